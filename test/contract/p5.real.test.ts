import { describeWithBroker } from '../helpers/broker-shared'
import { othersPromises } from './p5-others'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('P5', ({ brokers }) => describeOn('on a real broker', () => realStage(brokers), othersPromises))
