import { describeWithBroker } from '../helpers/broker-shared'
import { hostileRecordPromises } from './hostile-records'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('hostile records', ({ brokers }) =>
  describeOn(
    'on a real broker',
    () => realStage(brokers),
    (given) => {
      hostileRecordPromises(given, { numRuns: 1, records: 150 })
    },
  ),
)
