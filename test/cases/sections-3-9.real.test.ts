import { r43 } from './r43-dead-after-an-error'
import { r47 } from './r47-long-handlers'
import { r49 } from './r49-sleep-instead-of-wait'
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
import { r82 } from './r82-one-bad-in-a-batch'
import { onReal } from './tell'

onReal('3 crash loops and storms', r43, r47, r49, r55)
onReal('4 shutdown and lifecycle', r58, r59, r60)
onReal('5 groups and topics', r63, r64, r65, r68)
onReal('6 timing', r69, r71)
onReal('7 envelope and headers', r74)
onReal('9 policy', r82)
