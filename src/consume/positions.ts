/**
 * Where the lanes of a group go on reading, when the client does not simply go on: a batch that does not continue its lane, a
 * stretch of the log without records, a log that was cut below us.
 *
 * A refused batch -> paused, the log looked up -> cut below us: gone and advanced -> sought, resumed
 *                                              -> another log, as its topic was made anew: the lane is begun anew
 *                                              -> of another generation -> sought, resumed
 *                                              -> the look-up failed -> waits -> resumed
 * A batch before our position is refused too, and then the client may have gone back by itself, to the beginning of a log in
 * which our position does not exist: where the look-up fails, it is resumed as it is, after a while, and the batch comes again.
 *
 * Must never happen: records taken that do not continue the lane; a look-up that the client's fetches wait for; two
 * look-ups for one lane at once; a partition left paused by one; a lane of a topic made anew that goes on where it was, since
 * all that is written up to there would be passed over.
 */
import { errorText, type Emitter } from '../observe'
import type { FetchedBatch, GroupConsumer, LogRange, TopicAdmin } from '../ports'
import type { Lane } from './lane'
import { isOther, RESET } from './opening'
import { SerialQueue } from './serial-queue'

/** After a look-up that has failed, ms: what is resumed at once is refused, and looked up, at once as well. */
const RETRY = { firstMs: 200, maxMs: 5_000 }

export interface PositionsOptions {
  readonly admin: TopicAdmin
  readonly emitter: Emitter
  readonly consumer: Pick<GroupConsumer, 'seek' | 'pause' | 'resume'>
  readonly groupId: string
  readonly stopping: () => boolean
  /** Resolves after so long, ms, or when the group stops. */
  readonly wait: (ms: number) => Promise<void>
  /** The lane's log is another one than it was, and begins at `low`. */
  readonly remade: (lane: Lane, low: bigint) => void
  /** The frontier has moved. */
  readonly moved: () => void
}

export interface Positions {
  /** The batch does not continue the lane: it was fetched in another generation, or the log was cut below us. */
  refuse(lane: Lane, batch: FetchedBatch): void
  /** The client's fetch has moved from `first` to `next` over what no handler sees. */
  passed(lane: Lane, first: bigint, next: bigint): void
}

export function createPositions(options: PositionsOptions): Positions {
  const { admin, emitter, consumer, groupId, stopping, moved } = options
  const lookedUp = new Set<Lane>()
  /** Look-ups that have failed, one after the other. */
  const failures = new WeakMap<Lane, number>()
  /**
   * Lanes whose log ends below them, and where they stood. A leader that is new may tell an end that is behind what the one
   * before has given out (KIP-207); where the log really ends there, the client's next fetch finds that out, and we look again.
   */
  const doubted = new WeakMap<Lane, bigint>()

  function seekBack(lane: Lane): void {
    if (lane.position !== undefined) consumer.seek(lane, lane.position)
  }

  async function lookUp(lane: Lane, fetched: bigint): Promise<void> {
    const stood = lane.committed
    const stoodAt = lane.position ?? 0n
    const found = await logOf(lane, fetched)
    if (found !== undefined) failures.delete(lane)
    else if (!lane.closed && !stopping()) {
      const before = failures.get(lane) ?? 0
      failures.set(lane, before + 1)
      await options.wait(Math.min(RETRY.firstMs * 2 ** before, RETRY.maxMs))
    }
    lookedUp.delete(lane)
    if (lane.closed || stopping()) return
    const { tier, topic, partition, position } = lane
    if (found !== undefined && position !== undefined) {
      const { low } = found.range
      if (isOther(found.range, stoodAt, stood, found.committed)) {
        if (found.committed === RESET || doubted.get(lane) === stoodAt) {
          options.remade(lane, low)
          return
        }
        doubted.set(lane, stoodAt)
      }
      if (low > position) {
        emitter.emit('gone', { tier, topic, partition, from: position.toString(), to: low.toString() })
        // The client has put its -2 over it.
        lane.committed = undefined
        advance(lane, low)
      }
    }
    if (found !== undefined || position === undefined || fetched > position) seekBack(lane)
    if (!lane.full) consumer.resume(lane)
  }

  /** What decides; the group's offset only for a batch before our position, where it tells whether the client went back. */
  async function logOf(
    { topic, partition, position = 0n }: Lane,
    fetched: bigint,
  ): Promise<{ range: LogRange; committed: bigint | undefined } | undefined> {
    try {
      const committed = fetched < position ? await admin.committed(groupId, [topic]) : []
      const range = (await admin.ranges(topic)).find((each) => each.partition === partition)
      return range && { range, committed: committed.find((each) => each.partition === partition)?.offset }
    } catch (error) {
      emitter.emit('problem', { where: `looking up the log of '${topic}'`, error: errorText(error) })
      return undefined
    }
  }

  function advance(lane: Lane, next: bigint): void {
    // The queue was dropped: records that the tracker has never seen stand between its frontier and `next`.
    if (stopping()) return
    lane.position = next
    // Records that wait in their batches are not known to the tracker: it must not step over them.
    if (lane.queue instanceof SerialQueue && lane.queue.extend(next)) return
    if (!lane.tracker.pass(next)) return
    lane.dirty = true
    moved()
  }

  return {
    refuse(lane, batch) {
      if (lane.position === undefined) return
      // The next answer would be refused as well, thousands of times a second.
      consumer.pause(lane)
      if (lookedUp.has(lane)) return
      lookedUp.add(lane)
      void lookUp(lane, batch.fetchedOffset)
    },
    passed(lane, first, next) {
      if (lane.position === undefined || next <= lane.position) return
      // Like a batch, it must continue the lane. It does not say where its fetch began; the first of a generation may be
      // one of the generation before, so it counts only where it begins at our position.
      if (first !== lane.position && !lane.synced) {
        lane.synced = true
        seekBack(lane)
        return
      }
      advance(lane, next)
    },
  }
}
