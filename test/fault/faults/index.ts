/** Every fault of the suite, in the order in which they are listed. */
import type { Fault } from './fault'
import { kill } from './kill'

export const FAULTS: readonly Fault[] = [kill]
