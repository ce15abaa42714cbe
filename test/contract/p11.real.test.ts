import { describeWithBroker } from '../helpers/broker-shared'
import { memoryPromises } from './p11-memory'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P11 on a real broker', ({ brokers }) => {
  describeOn('memory', () => realStage(brokers), memoryPromises)
})
