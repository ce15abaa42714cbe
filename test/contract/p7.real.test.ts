import { beyondPromises } from './p7-beyond'
import { describeWithBroker } from '../helpers/broker-shared'
import { positionPromises } from './p7-positions'
import { rebalancePromises } from './p7-rebalance'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P7 on a real broker', ({ brokers }) => {
  describeOn('members', () => realStage(brokers), rebalancePromises)
  describeOn('positions', () => realStage(brokers), positionPromises)
  describeOn('beyond the offset', () => realStage(brokers), beyondPromises)
})
