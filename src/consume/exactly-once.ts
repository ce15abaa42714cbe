/**
 * `delivery: 'exactly-once'`: what joins a lane, its transactions and the group's commits.
 *
 * A lane's offset is moved by two: by plain commits, which the broker refuses to a member of another generation, and by
 * transactions, which it refuses to whoever does not have the transactional id any more. Hence:
 *   - at each assignment, and after any failure, the id is taken over before the committed offset is read. What was done
 *     before under the id is then either in that offset or never will be.
 *   - no transaction begins before a plain commit, sent since, was acknowledged: a process that was stopped for long may take
 *     the id away from the partition's new owner, and must find out by this that it is not the owner. (That one takes it back.)
 *   - of the two only one is under way at a time.
 */
import type { Settings } from '../config'
import { createGate, createTransactions, type Transactions } from '../deliver'
import type { Emitter } from '../observe'
import type { Clock, Driver, Random, Timer } from '../ports'
import { LATE_MS, type Committer } from './committer'
import type { Entry, Lane } from './lane'
import { noteAborted, noteAcknowledged, noteRefused, noteSent, type CommitDraft } from './lane-commit'

/** How many take an id over at the same time: each connects, and a member may get hundreds of partitions at once. */
const AT_ONCE = 16

export interface ExactlyOnceOptions {
  readonly driver: Driver
  readonly clock: Clock
  readonly random: Random
  readonly emitter: Emitter
  readonly settings: Settings
  recount(topic: string): Promise<number | undefined>
}

export interface LaneHooks {
  readonly groupId: string
  readonly committer: Committer
  settled(lane: Lane, entry: Entry): void
  /** What the lane may start has changed. */
  said(lane: Lane): void
  /** The lane is to be verified before it goes on. */
  lost(lane: Lane): void
}

export type MakeTransactions = (lane: Lane, hooks: LaneHooks) => Transactions<Entry>

/** `/` stands in no topic's name, so that no two partitions share an id. */
export function transactionalId(groupId: string, { topic, partition }: { topic: string; partition: number }): string {
  return `${groupId}/${topic}/${partition}`
}

export function makesTransactions(options: ExactlyOnceOptions): MakeTransactions {
  const { driver, clock, random, emitter, settings } = options
  const gate = createGate(AT_ONCE)
  return (lane, { groupId, committer, settled, said, lost }) => {
    const id = transactionalId(groupId, lane)
    let late: Timer | undefined
    const over = (): void => {
      late?.cancel()
      late = undefined
    }
    return createTransactions<Entry, CommitDraft>({
      transactor: driver.transactor(id, { groupId, topic: lane.topic, partition: lane.partition }),
      transactionalId: id,
      clock,
      random,
      emitter,
      groupId,
      topic: lane.topic,
      partition: lane.partition,
      tier: lane.tier,
      timeoutMs: settings.publishTimeoutMs,
      isTooLarge: (error) => driver.isTooLarge(error),
      isFenced: (error) => driver.isFenced(error),
      countPartitions: options.recount,
      gate,
      taken() {
        lane.unproven = true
      },
      mayBegin() {
        if (lane.state !== 'open' || lane.committing) return false
        if (!lane.unproven) return true
        lane.dirty = true
        committer.poke()
        return false
      },
      commitOf: (entries) => committer.asIf(lane, entries),
      began(commit) {
        lane.transacting = true
        noteSent(lane, commit)
        // As with a plain commit: what it would let the lane start does not wait for it for long.
        late = clock.after(LATE_MS, () => {
          noteRefused(lane)
          said(lane)
        })
      },
      settled(entries, commit) {
        over()
        lane.transacting = false
        noteAcknowledged(lane, commit)
        for (const entry of entries) settled(lane, entry)
        said(lane)
      },
      aborted: (commit) => noteAborted(lane, commit),
      failed: (error) => committer.refused(error),
      blocked: () => said(lane),
      ended() {
        over()
        lane.transacting = false
        if (lane.dirty) committer.poke()
      },
      lost: () => lost(lane),
      closed: over,
    })
  }
}
