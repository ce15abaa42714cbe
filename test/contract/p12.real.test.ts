import { describeWithBroker } from '../helpers/broker-shared'
import { silentPromises } from './p12-silent'
import { unreadablePromises } from './p12-unreadable'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P12 on a real broker', ({ brokers }) => {
  describeOn('failures', () => realStage(brokers), silentPromises)
  describeOn('failures', () => realStage(brokers), unreadablePromises)
})
