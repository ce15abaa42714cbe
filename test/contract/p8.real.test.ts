import { describeWithBroker } from '../helpers/broker-shared'
import { numberPromises } from './p8-numbers'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P8 on a real broker', ({ brokers }) => {
  describeOn('numbers', () => realStage(brokers), numberPromises)
})
