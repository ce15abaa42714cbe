import { describeWithBroker } from '../helpers/broker-shared'
import { orderPromises } from './p6-order'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P6', ({ brokers }) => describeOn('on a real broker', () => realStage(brokers), orderPromises))
