import { hostileRecordPromises } from './hostile-records'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

/** More by HOSTILE_RUNS. */
const numRuns = Number(process.env['HOSTILE_RUNS'] ?? 25)

describeOn('hostile records: on the fake broker', fakeStage, (given) => {
  hostileRecordPromises(given, { numRuns, records: 12 })
})
