import { describeWithBroker } from '../helpers/broker-shared'
import { frontierPromises } from './p1-frontier'
import { publishPromises } from './p1-publish'
import { describeOn } from './promises'
import { remadePromises } from './p1-remade'
import { realStage } from './stage-real'

describeWithBroker('P1 on a real broker', ({ brokers }) => {
  describeOn('copies', () => realStage(brokers), publishPromises)
  describeOn('offsets', () => realStage(brokers), frontierPromises)
  describeOn('topics made anew', () => realStage(brokers), remadePromises)
})
