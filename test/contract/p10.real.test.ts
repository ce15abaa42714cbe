import { describeWithBroker } from '../helpers/broker-shared'
import { topicPromises } from './p10-topics'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P10 on a real broker', ({ brokers }) => {
  describeOn('topics', () => realStage(brokers), topicPromises)
})
