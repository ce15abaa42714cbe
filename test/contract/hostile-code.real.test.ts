import { describeWithBroker } from '../helpers/broker-shared'
import { hostileCodePromises } from './hostile-code'
import { describeOn } from './promises'
import { realStage } from './stage-real'

describeWithBroker('hostile code', ({ brokers }) =>
  describeOn('on a real broker', () => realStage(brokers), hostileCodePromises),
)
