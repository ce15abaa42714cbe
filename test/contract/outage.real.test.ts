import { describeWithBroker } from '../helpers/broker-shared'
import { outagePromises } from './outage'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('outages on a real broker', ({ brokers }) => {
  describeOn('', () => realStage(brokers), outagePromises)
})
