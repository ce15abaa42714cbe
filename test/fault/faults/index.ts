/** Every fault of the suite, in the order in which they are listed. */
import { brokerKill, brokerStop } from './broker'
import { churn } from './churn'
import type { Fault } from './fault'
import { kill } from './kill'
import { leadersMove } from './leaders'
import { networkFaults } from './network'
import { term } from './term'

export const FAULTS: readonly Fault[] = [kill, term, churn, brokerStop, brokerKill, leadersMove, ...networkFaults]
