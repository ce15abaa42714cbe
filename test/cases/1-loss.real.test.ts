import { r01 } from './r01-lost-while-waiting'
import { r02 } from './r02-publish-that-did-not'
import { r03 } from './r03-partition-counts'
import { r05 } from './r05-ledger'
import { r06 } from './r06-slow-dead-letter'
import { r07 } from './r07-slow-acknowledgement'
import { r08 } from './r08-many-sends'
import { r09 } from './r09-late-result'
import { r10 } from './r10-commits-of-lost-partitions'
import { r11 } from './r11-out-of-order'
import { r12 } from './r12-dead-letter-beside'
import { r13 } from './r13-stop-in-mid-batch'
import { r14 } from './r14-commit-at-stop'
import { r15 } from './r15-null-headers'
import { r18 } from './r18-before-the-first-join'
import { r19 } from './r19-groups-apart'
import { r21 } from './r21-old-over-new'
import { r22 } from './r22-one-key-one-place'
import { r24, r24Retention } from './r24-expiry-that-travels'
import { onReal } from './tell'

onReal(
  '1 loss and corruption',
  ...[r01, r02, r03, r05, r06, r07, r08, r09, r10, r11, r12, r13, r14, r15, r18, r19, r21, r22, r24, r24Retention],
)
