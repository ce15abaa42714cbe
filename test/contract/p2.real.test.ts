import { describeWithBroker } from '../helpers/broker-shared'
import { duePromises } from './p2-due'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P2', ({ brokers }) => describeOn('on a real broker', () => realStage(brokers), duePromises))
