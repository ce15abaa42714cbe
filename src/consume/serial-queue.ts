/**
 * What waits in a lane of a main topic in `partition` order: the batches as they were fetched. A record becomes an entry
 * only when it is taken, since one that is made earlier and lives through a garbage collection costs several times what
 * one costs that is made, used and forgotten; this is the mode most records pass through.
 *
 * Life of a record:  in a batch -> taken (an entry, known to the tracker) -> released | put back -> taken ...
 *
 * Must never happen: two records taken at once; a record that is not yet an entry left out of the frontier's reckoning
 * (what comes after it must not be counted as passed: `extend` is asked first).
 */
import type { Message } from '../record'
import { Deque } from './deque'

export interface SerialBatch {
  /** The queue's own: what was taken is taken out, so that an array that outlives its batch keeps no record alive. */
  readonly messages: (Message | undefined)[]
  /** The offset behind the batch. */
  tail: bigint
  /** Of one record, on average: what a batch adds to the lane its records take away again. */
  readonly bytesEach: number
  /** Whether any of its records may have been replayed. */
  readonly replayed: boolean
}

export class SerialQueue<T> {
  readonly #batches = new Deque<SerialBatch>()
  /** Where the first batch goes on. */
  #at = 0
  #length = 0
  #busy = false
  #back: T | undefined
  /** Records that were made to entries: the next gets this number. */
  #made = 0
  /** The number of the record that was not given out for the `limit`, at the last take. */
  beyond: number | undefined

  /**
   * `make` is called in offset order; `tail` is given with the last record of a batch. It gives nothing for a record that
   * is not to be handled.
   */
  constructor(
    private readonly make: (message: Message, batch: SerialBatch, tail: bigint | undefined) => T | undefined,
  ) {}

  /** Records that have not been taken. */
  get length(): number {
    return this.#length
  }

  push(batch: SerialBatch): void {
    if (batch.messages.length === 0) return
    this.#batches.push(batch)
    this.#length += batch.messages.length
  }

  /** The log up to `next` holds nothing more. False where no record waits, so that the frontier itself may move. */
  extend(next: bigint): boolean {
    const { last } = this.#batches
    if (last === undefined) return false
    if (next > last.tail) last.tail = next
    return true
  }

  /** The next record, if its number is below the limit or it was given out before. */
  take(_now?: number, limit = Infinity): T | undefined {
    this.beyond = undefined
    if (this.#busy) return undefined
    let item = this.#back
    if (item !== undefined) {
      this.#back = undefined
      this.#length--
    }
    while (item === undefined) {
      const batch = this.#batches.first
      if (batch === undefined) return undefined
      if (this.#made >= limit) {
        this.beyond = this.#made
        return undefined
      }
      this.#made++
      const message = batch.messages[this.#at]!
      batch.messages[this.#at++] = undefined
      const isLast = this.#at === batch.messages.length
      if (isLast) {
        this.#batches.shift()
        this.#at = 0
      }
      this.#length--
      item = this.make(message, batch, isLast ? batch.tail : undefined)
    }
    this.#busy = true
    return item
  }

  release(_item?: T): void {
    this.#busy = false
  }

  putBack(item: T): void {
    this.#busy = false
    this.#back = item
    this.#length++
  }

  /** Nothing here waits for a time. */
  nextDue(): number | undefined {
    return this.#busy || this.#length === 0 ? undefined : 0
  }

  clear(): void {
    this.#batches.clear()
    this.#at = this.#length = 0
    this.#busy = false
    this.#back = undefined
  }
}
