/** Joins the groups of one consumer, and says what is waited for where that takes long. */
import pLimit from 'p-limit'
import type { Clock, Logger } from '../ports'
import { formatDuration } from '../topology'

/** How many groups join at once: each is a connection and a join, and a process may have many tiers. */
const JOINS_AT_ONCE = 8
/** A start that takes so long is explained, ms: it looks as if it hung. */
const EXPLAIN_AFTER_MS = 10_000

export interface JoinOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly sessionTimeoutMs: number
  readonly rebalanceTimeoutMs: number
}

interface Joins {
  readonly groupId: string
  start(): Promise<void>
}

/** Resolves when every group is joined; rejects with the first that is not, or with `cut`, which ends the wait. */
export async function joinGroups(groups: readonly Joins[], cut: Promise<never>, options: JoinOptions): Promise<void> {
  const { clock, logger } = options
  const awaited = new Set(groups)
  const limit = pLimit(JOINS_AT_ONCE)
  // The first group is that of the main topics: all lines are told under its name.
  const say = (): void => logger.info(explain([...awaited], options), { groupId: groups[0]?.groupId })
  const explanation = clock.after(EXPLAIN_AFTER_MS, say, 'deadline')
  const join = async (group: Joins): Promise<void> => {
    await group.start()
    awaited.delete(group)
  }
  try {
    await Promise.race([cut, Promise.all(groups.map((group) => limit(() => join(group))))])
  } finally {
    explanation.cancel()
  }
}

function explain(awaited: readonly Joins[], { sessionTimeoutMs, rebalanceTimeoutMs }: JoinOptions): string {
  const [what, whose] = awaited.length === 1 ? ['the group', 'its'] : ['the groups', 'their']
  return (
    `start() still waits for ${what} ${awaited.map(({ groupId }) => groupId).join(', ')} to settle: the broker lets nobody begin` +
    ` before ${whose} other members have joined anew, which takes up to rebalanceTimeout` +
    ` (${formatDuration(rebalanceTimeoutMs)}); a member that ended without stop() counts until sessionTimeout` +
    ` (${formatDuration(sessionTimeoutMs)}) has passed since its last sign of life`
  )
}
