import { describeWithBroker } from '../helpers/broker-shared'
import { silentPromises } from './p12-silent'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P12 on a real broker', ({ brokers }) => {
  describeOn('failures', () => realStage(brokers), silentPromises)
})
