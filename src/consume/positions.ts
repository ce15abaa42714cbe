/**
 * Where the lanes of a group go on reading, when the client does not simply go on: a batch that does not continue its lane, a
 * stretch of the log without records, a log that was cut below us.
 *
 * A refused batch:  before our position (of another generation) -> sought
 *                   behind it -> paused, the log's beginning looked up -> gone and advanced, or not -> sought, resumed
 *
 * Must never happen: records taken that do not continue the lane; a look-up that the client's fetches wait for; two
 * look-ups for one lane at once; a partition left paused by one.
 */
import { errorText, type Emitter } from '../observe'
import type { FetchedBatch, GroupConsumer, TopicAdmin } from '../ports'
import type { Lane } from './lane'
import { SerialQueue } from './serial-queue'

export interface PositionsOptions {
  readonly admin: TopicAdmin
  readonly emitter: Emitter
  readonly consumer: Pick<GroupConsumer, 'seek' | 'pause' | 'resume'>
  readonly stopping: () => boolean
  /** The frontier has moved. */
  readonly moved: () => void
}

export interface Positions {
  /** The batch does not continue the lane: it was fetched in another generation, or the log was cut below us. */
  refuse(lane: Lane, batch: FetchedBatch): void
  /** The client's fetch has moved from `first` to `next` over what no handler sees. */
  passed(lane: Lane, first: bigint, next: bigint): void
}

export function createPositions({ admin, emitter, consumer, stopping, moved }: PositionsOptions): Positions {
  const lookedUp = new Set<Lane>()

  function seekBack(lane: Lane): void {
    if (lane.position !== undefined) consumer.seek(lane, lane.position)
  }

  async function lookUp(lane: Lane): Promise<void> {
    const low = await lowOf(lane)
    lookedUp.delete(lane)
    if (lane.closed || stopping()) return
    const { tier, topic, partition, position } = lane
    if (low !== undefined && position !== undefined && low > position) {
      emitter.emit('gone', { tier, topic, partition, from: position.toString(), to: low.toString() })
      advance(lane, low)
    }
    seekBack(lane)
    if (!lane.full) consumer.resume(lane)
  }

  async function lowOf({ topic, partition }: Lane): Promise<bigint | undefined> {
    try {
      return (await admin.ranges(topic)).find((range) => range.partition === partition)?.low
    } catch (error) {
      emitter.emit('problem', { where: `looking up the beginning of '${topic}'`, error: errorText(error) })
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
      if (batch.fetchedOffset < lane.position) {
        seekBack(lane)
        return
      }
      // The next answer would be refused as well, thousands of times a second.
      consumer.pause(lane)
      if (lookedUp.has(lane)) return
      lookedUp.add(lane)
      void lookUp(lane)
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
