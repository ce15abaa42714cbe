import { describeWithBroker } from '../helpers/broker-shared'
import { crashLoopPromises } from './crash-loop'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P1 on a real broker', ({ brokers }) => {
  describeOn('crash loops', () => realStage(brokers), crashLoopPromises)
})
