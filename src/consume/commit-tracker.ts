/**
 * Which offset of one partition may be committed.
 *
 * Items are added in offset order and settled in any order. The frontier is the offset behind the longest settled run
 * from the start: everything below it is settled. It steps from record to record and not by one, since offsets have
 * gaps (compaction, transaction markers); behind the last record of a batch it is the offset behind the whole batch.
 *
 * Must never happen: the frontier passes an unsettled item; the frontier falls.
 */
import { Deque } from './deque'

export interface Tracked {
  settled: boolean
  /** The record's own offset, decimal text as the client gives it; made a bigint only where a commit needs it. */
  readonly offset: string
  /** For the last record of a batch: the offset behind the batch. */
  tail: bigint | undefined
}

export class CommitTracker<T extends Tracked> {
  readonly #items = new Deque<T>()
  #base: bigint
  /** The last item of the settled run; its end is the frontier. */
  #passed: T | undefined

  constructor(start: bigint) {
    this.#base = start
  }

  /** Items between the frontier and the last one added, settled or not. */
  get length(): number {
    return this.#items.length
  }

  add(item: T): void {
    this.#items.push(item)
  }

  /** Returns whether the frontier has moved. Settling an item twice changes nothing. */
  settle(item: T): boolean {
    item.settled = true
    let moved = false
    for (let first = this.#items.first; first?.settled; first = this.#items.first) {
      this.#passed = first
      this.#items.shift()
      moved = true
    }
    return moved
  }

  /** The log up to `next` holds nothing more for a handler. Returns whether the frontier has moved. */
  pass(next: bigint): boolean {
    const { last } = this.#items
    if (last) {
      if (last.tail === undefined || next > last.tail) last.tail = next
      return false
    }
    if (next <= this.frontier) return false
    this.#passed = undefined
    this.#base = next
    return true
  }

  get frontier(): bigint {
    if (this.#passed) {
      this.#base = this.#passed.tail ?? BigInt(this.#passed.offset) + 1n
      this.#passed = undefined
    }
    return this.#base
  }
}
