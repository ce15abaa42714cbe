import { describeWithBroker } from '../helpers/broker-shared'
import { describeOn } from './promises'
import { seamRules } from './rules-seam'
import { realStage } from './stage-real'

describeWithBroker('rules 1 to 20 at the seam', ({ brokers }) =>
  describeOn('on a real broker', () => realStage(brokers), seamRules),
)
