/** A record as it stands before its n-th attempt: its failures so far are written by the engine's own hands. */
import type { Settings } from '../../config'
import type { Outgoing, Rec } from '../../record'
import { composeCopy, decideRoute, openMain, openRetry, type Handled } from '../../route'

/** Never asked: the delays of what has been are told without their jitter. */
const NO_CHANCE = (): number => 0

/**
 * The copy from which attempt `attempt` (2 or more) is made, due at `now`. The failures before it lie as far apart as the
 * schedule says, the last of them one delay ago.
 */
export function copyForAttempt(rec: Rec, attempt: number, settings: Settings, now: number): Outgoing {
  const { topology, groupId, release } = settings
  const delays = Array.from({ length: attempt - 1 }, (_, i) => topology.tierOfAttempt(i + 2)?.delayMs ?? 0)
  let at = now - delays.reduce((sum, delay) => sum + delay, 0)
  let opened = openMain(rec, topology) as Handled
  let copy: Outgoing | undefined
  for (const [i, delay] of delays.entries()) {
    if (copy !== undefined) {
      opened = openRetry({ ...copy, offset: BigInt(i - 1), timestamp: at }, topology, at) as Handled
    }
    const decision = decideRoute({
      main: opened.main,
      attempt: i + 1,
      firstFailedAt: opened.firstFailedAt,
      verdict: { kind: 'retry' },
      topology: { ...topology, jitter: 0, deadlineMs: undefined },
      now: at,
      random: NO_CHANCE,
    })
    const failure = {
      error: { name: 'Error', message: `attempt ${i + 1} of ${topology.maxAttempts}, before the one under test` },
      because: 'attempt() begins later',
      at,
      groupId,
      release,
    }
    copy = composeCopy(rec, opened, decision, failure, rec.partition + 1)
    at += delay
  }
  if (copy === undefined) throw new RangeError('the first attempt is made of the record itself')
  return copy
}
