import { describeWithBroker } from '../helpers/broker-shared'
import { batchCalls, batchOrder } from './batch-calls'
import { describeOn } from './promises'
import { realStage } from './stage-real'

// What fails of a batch is told to a real broker by R82.
describeWithBroker('batches on a real broker', ({ brokers }) => {
  describeOn('', () => realStage(brokers), batchCalls)
  describeOn(
    '',
    () => realStage(brokers),
    (given) => batchOrder(given, ['key']),
  )
})
