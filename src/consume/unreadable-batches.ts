/** Which lanes of a group wait for a batch that cannot be decoded: told when it is found, and when it is over. */
import { errorText, type Emitter } from '../observe'
import type { Clock, TopicPartition } from '../ports'
import { laneKey, type Lane } from './lane'

interface Unreadable {
  readonly offset: bigint
  readonly error: string
  /** When it was found first, monotonic, ms. */
  readonly since: number
}

export class UnreadableBatches {
  readonly #byLane = new Map<string, Unreadable>()

  constructor(
    private readonly tier: string,
    private readonly clock: Clock,
    private readonly emitter: Emitter,
  ) {}

  /** Its partition waits, uncommitted, and nothing of it is passed over; the others go on. */
  found(where: TopicPartition, offset: bigint, cause: unknown, againInMs: number): void {
    const { topic, partition } = where
    const key = laneKey(where)
    const now = this.clock.monotonic()
    const error = errorText(cause)
    const before = this.#byLane.get(key)
    const since = before?.offset === offset ? before.since : now
    this.#byLane.set(key, { offset, error, since })
    const forMs = Math.round(now - since)
    this.emitter.emit('unreadable', { tier: this.tier, topic, partition, offset: `${offset}`, error, forMs, againInMs })
  }

  /** Records up to, not including, `next` have come. */
  read(where: TopicPartition, next: bigint): void {
    if (this.#byLane.size === 0) return
    const found = this.#byLane.get(laneKey(where))
    if (found === undefined || next <= found.offset) return
    this.#byLane.delete(laneKey(where))
    const { topic, partition } = where
    const forMs = Math.round(this.clock.monotonic() - found.since)
    this.emitter.emit('readable', { tier: this.tier, topic, partition, offset: `${found.offset}`, forMs })
  }

  /** What is wrong with the lane's next batch. */
  of(lane: Lane): string | undefined {
    const found = this.#byLane.get(laneKey(lane))
    // Deleted from the log, it is no longer the next, though perhaps nothing has come behind it yet.
    return found && (lane.position ?? found.offset) <= found.offset ? found.error : undefined
  }

  /** Others belong to other members now, who find the same. */
  keep(assigned: ReadonlySet<string>): void {
    for (const key of this.#byLane.keys()) if (!assigned.has(key)) this.#byLane.delete(key)
  }
}
