import { batchCalls, batchOrder } from './batch-calls'
import { batchCrashes } from './batch-crash'
import { batchFailures } from './batch-failures'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('batches on the fake broker', fakeStage, (given) => {
  batchFailures(given)
  batchCrashes(given)
  batchCalls(given)
  batchOrder(given, ['partition', 'key', 'unordered'])
})
