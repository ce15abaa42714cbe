import { describeWithBroker } from '../helpers/broker-shared'
import { bytesPromises } from './p3-bytes'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P3', ({ brokers }) => describeOn('on a real broker', () => realStage(brokers), bytesPromises))
