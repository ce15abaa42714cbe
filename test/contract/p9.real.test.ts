import { describeWithBroker } from '../helpers/broker-shared'
import { stopPromises } from './p9-stop'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P9 on a real broker', ({ brokers }) => {
  describeOn('stop', () => realStage(brokers), stopPromises)
})
