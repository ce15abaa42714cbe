import { describeWithBroker } from '../helpers/broker-shared'
import { forgedPromises } from './p4-forged'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P4', ({ brokers }) => describeOn('on a real broker', () => realStage(brokers), forgedPromises))
