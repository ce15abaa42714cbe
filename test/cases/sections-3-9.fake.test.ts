import { r43 } from './r43-dead-after-an-error'
import { r44 } from './r44-poison-record'
import { r47 } from './r47-long-handlers'
import { r49 } from './r49-sleep-instead-of-wait'
import { r50 } from './r50-undecodable-grows'
import { r51 } from './r51-failure-at-the-dlq'
import { r54 } from './r54-every-place-taken'
import { r55 } from './r55-unknown-codec'
import { r58 } from './r58-stop-before-started'
import { r59 } from './r59-stop-in-a-crash'
import { r60 } from './r60-stop-that-hangs'
import { r63 } from './r63-one-group-different-topics'
import { r64 } from './r64-topics-not-there'
import { r65 } from './r65-main-topic-by-accident'
import { r68 } from './r68-too-many-consumers'
import { r69 } from './r69-one-second-that-takes-ten'
import { r71 } from './r71-waiting-told-as-an-error'
import { r74 } from './r74-names-of-every-object'
import { r75 } from './r75-trace-lost-or-doubled'
import { r77 } from './r77-dependency-down'
import { r78 } from './r78-open-breaker'
import { r79 } from './r79-no-limit-to-dead-letters'
import { r80 } from './r80-lost-connections'
import { r82 } from './r82-one-bad-in-a-batch'
import { r83 } from './r83-then-a-person'
import { onFake } from './tell'

onFake('3 crash loops and storms', r43, r44, r47, r49, r50, r51, r54, r55)
onFake('4 shutdown and lifecycle', r58, r59, r60)
onFake('5 groups and topics', r63, r64, r65, r68)
onFake('6 timing', r69, r71)
onFake('7 envelope and headers', r74, r75)
onFake('9 policy', r77, r78, r79, r80, r82, r83)
