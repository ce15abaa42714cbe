/**
 * Batches into lanes, as far as there is room.
 *
 * A batch -> of no lane of ours, or while stopping: refused, and its partition paused
 *         -> its lane has no position yet: waits, at most WAIT_FOR_ROOM_MS; still none: left unresolved, so it comes again
 *         -> does not continue its lane: refused (positions.ts). That stands in for the generation, which a batch does not carry
 *         -> continues it: taken as far as there is room; what is left comes again
 * A lane that is full afterwards, and still is after WAIT_FOR_ROOM_MS, is paused until half of its share is free.
 *
 * Must never happen: a batch that waits longer than WAIT_FOR_ROOM_MS, since it holds up the whole broker's fetches; a partition
 * that is fetched again and again for what cannot be taken; a paused one that nothing resumes.
 */
import type { Emitter } from '../observe'
import type { Clock, FetchedBatch, GroupConsumer } from '../ports'
import type { Message } from '../record'
import { takeBatch, type Intake } from './intake'
import { type Lane, laneKey } from './lane'
import type { Positions } from './positions'
import { exceedsShare, fits, type Limits, type Room, roomOf } from './room'
import type { UnreadableBatches } from './unreadable-batches'

/** How long a batch may hold up the fetches of its broker while its lane has no room (or no position) yet, ms. */
const WAIT_FOR_ROOM_MS = 50
/** The least time between two `lane` events of one lane that only say how deep it is, ms. */
const REPORT_EVERY_MS = 1_000

export interface FeedOptions {
  /** Of the whole group. */
  readonly limits: Limits
  readonly clock: Clock
  readonly emitter: Emitter
  readonly consumer: Pick<GroupConsumer, 'seek' | 'pause' | 'resume'>
  readonly intake: Intake
  readonly positions: Positions
  readonly unreadable: UnreadableBatches
  readonly lanes: ReadonlyMap<string, Lane>
  readonly stopping: () => boolean
  /** There is something to start. */
  readonly pump: (lane: Lane) => void
  /** The frontier has moved. */
  readonly moved: () => void
}

export class Feed {
  constructor(readonly options: FeedOptions) {}

  async batch(batch: FetchedBatch): Promise<void> {
    const { consumer, lanes, positions, pump, stopping, unreadable } = this.options
    const lane = lanes.get(laneKey(batch))
    if (!lane || stopping()) {
      // Unresolved, and paused: a refused batch is fetched again at once, thousands of times a second.
      consumer.pause(batch)
      return
    }
    const hasWaited = lane.position === undefined
    if (lane.position === undefined) {
      await this.#changeOrTimeout(lane)
      // Not resolved, so the same is fetched again, from the lane's own position once that is known.
      if (lane.position === undefined || lane.closed) return
    }
    if (batch.fetchedOffset !== lane.position) {
      positions.refuse(lane, batch)
      return
    }
    lane.synced = true
    unreadable.read(batch, batch.lastOffset + 1n)
    const left = this.#take(lane, batch)
    // The seek to where the lane begins is still to be carried out, and would bring the same again, to be refused.
    if (hasWaited) consumer.seek(lane, lane.position)
    pump(lane)
    // What was left of a batch comes again once there is room for more than a record or two, and for the first of it: one that
    // does not fit, however much is free, would come again at once, thousands of times a second.
    const isFull = (): boolean =>
      left === undefined ? this.#isFull(lane) : !this.#hasRoom(lane) || !fits(left, this.#roomOf(lane), lane)
    if (isFull()) {
      await this.#changeOrTimeout(lane)
      if (isFull() && !lane.closed && !lane.full) {
        lane.full = true
        consumer.pause(lane)
        this.#report(lane)
      }
    }
  }

  /** A record of the lane is done with: there may be room again. */
  settled(lane: Lane): void {
    if ((lane.full || lane.awaited) && this.#hasRoom(lane)) {
      lane.wake()
      if (lane.full && !this.options.stopping()) {
        lane.full = false
        this.options.consumer.resume(lane)
        this.#report(lane)
      }
    }
    if (lane.held === 0 && lane.reportedHeld > 0) this.#report(lane)
  }

  /** Returns the first record that was not taken. */
  #take(lane: Lane, batch: FetchedBatch): Message | undefined {
    const { clock, intake, moved } = this.options
    const next = takeBatch(intake, lane, batch, this.#roomOf(lane))
    if (next === undefined) return batch.messages[0]
    batch.resolve(next)
    lane.position = next
    if (lane.dirty) moved()
    if (clock.monotonic() - lane.reportedAt >= REPORT_EVERY_MS) this.#report(lane)
    return next > batch.lastOffset ? undefined : batch.messages.find(({ offset }) => BigInt(offset) >= next)
  }

  #roomOf(lane: Lane): Room {
    return roomOf(lane, this.options.lanes.size, this.options.limits)
  }

  #isFull(lane: Lane): boolean {
    return exceedsShare(lane, this.options.lanes.size, this.options.limits, 1)
  }

  #hasRoom(lane: Lane): boolean {
    return !exceedsShare(lane, this.options.lanes.size, this.options.limits, 0.5)
  }

  #changeOrTimeout(lane: Lane): Promise<void> {
    const { clock } = this.options
    const wait = new Promise<void>((resolve) => {
      const timer = clock.after(WAIT_FOR_ROOM_MS, () => {
        off()
        resolve()
      })
      const off = lane.onChange(() => {
        timer.cancel()
        resolve()
      })
    })
    // A manual clock moves only while nothing is busy; a batch that waits is not.
    return clock.park?.(wait) ?? wait
  }

  #report(lane: Lane): void {
    const { clock, emitter } = this.options
    if (!emitter.active.lane) return
    lane.reportedAt = clock.monotonic()
    lane.reportedHeld = lane.held
    const { tier, topic, partition, held, running, full } = lane
    // A lane that knows its records by the batch takes an average away for each.
    emitter.emit('lane', { tier, topic, partition, held, running, bytes: Math.round(lane.bytes), full })
  }
}
