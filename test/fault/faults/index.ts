/** Every fault of the suite, in the order in which they are listed. */
import { brokerKill, brokerStop } from './broker'
import { churn } from './churn'
import type { Fault } from './fault'
import { hostileBytes, unknownCodec } from './hostile'
import { blockedLoop, clockJump, hangingHandlers } from './inside'
import { kill } from './kill'
import { leadersMove } from './leaders'
import { networkFaults } from './network'
import { notEnoughReplicas, rightRevoked, tooLarge } from './refused'
import { topicRemade } from './remade'
import { term } from './term'

export const FAULTS: readonly Fault[] = [
  kill,
  term,
  churn,
  brokerStop,
  brokerKill,
  leadersMove,
  ...networkFaults,
  blockedLoop,
  hangingHandlers,
  clockJump,
  rightRevoked,
  tooLarge,
  notEnoughReplicas,
  topicRemade,
  hostileBytes,
  unknownCodec,
]
