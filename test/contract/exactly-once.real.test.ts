import { describeWithBroker } from '../helpers/broker-shared'
import { exactlyOncePromises, STEP_FAULTS } from './exactly-once'
import { describeOn } from './promises'
import { realStage } from './stage-real'

/** Those whose outcome is the broker's; the others are told to the fake alone, for the time they take. */
const BROKERS_OWN = STEP_FAULTS.filter(([, fault]) => fault === 'answer-lost' || fault === 'late')

describeWithBroker('exactly once', ({ brokers }) => {
  describeOn(
    'on a real broker',
    () => realStage(brokers),
    (given) => exactlyOncePromises(given, BROKERS_OWN),
  )
})
