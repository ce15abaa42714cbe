/**
 * What waits in a lane, and which of it may start: the ordering mode and the due gate, and nothing else.
 *
 * Life of an item:  push -> waiting behind its key -> ready (first of its key) -> taken -> released
 *   - `partition`: every item has the same key; `key`: the record's key; `unordered`, and records without key: none.
 *   - at most one item of a key is ready or taken; the next becomes ready when that one is released.
 *   - a ready item is given out only when it is due; among ready items the one that is due first goes first.
 *   - `putBack` makes a taken item ready again, in front of what waits behind its key.
 *
 * Must never happen: two items of one key taken at once; an item given out before its due time; an item given out
 * twice without `putBack`; an item of a key overtaking an earlier one of that key.
 */
import { Deque } from './deque'
import { DueHeap } from './due-heap'

export interface Waiting {
  /** Its number in the lane, in the order of the log. */
  readonly seq: number
  /** ms since the epoch; 0 on the main topic. */
  readonly dueAt: number
  /** Items with the same key run one after the other; `undefined` is bound to nothing. */
  readonly orderKey: string | undefined
}

interface Ready<T> {
  readonly length: number
  readonly first: T | undefined
  push(item: T): void
  shift(): T | undefined
  clear(): void
}

export class LaneQueue<T extends Waiting> {
  readonly #ready: Ready<T>
  /** A key stands here while one of its items is ready or taken. */
  readonly #keys = new Map<string, Deque<T>>()
  #length = 0
  /** The number of the item that was not given out for the `limit`, at the last take. */
  beyond: number | undefined

  constructor(gated: boolean) {
    this.#ready = gated ? new DueHeap<T>() : new Deque<T>()
  }

  /** Items that have not been taken. */
  get length(): number {
    return this.#length
  }

  push(item: T): void {
    this.#length++
    const { orderKey } = item
    if (orderKey !== undefined) {
      const behind = this.#keys.get(orderKey)
      if (behind) {
        behind.push(item)
        return
      }
      this.#keys.set(orderKey, new Deque())
    }
    this.#ready.push(item)
  }

  /** The next item that may start at `now`, or undefined; none whose number is not below the limit. */
  take(now: number, limit = Infinity): T | undefined {
    const { first } = this.#ready
    this.beyond = undefined
    if (first === undefined || first.dueAt > now) return undefined
    if (first.seq >= limit) {
      this.beyond = first.seq
      return undefined
    }
    this.#length--
    return this.#ready.shift()
  }

  /** The item has run: the next of its key may start. */
  release(item: T): void {
    const { orderKey } = item
    if (orderKey === undefined) return
    const behind = this.#keys.get(orderKey)
    if (!behind) return
    const next = behind.shift()
    if (next) this.#ready.push(next)
    else this.#keys.delete(orderKey)
  }

  /** The item is to run again, before anything else of its key. */
  putBack(item: T): void {
    this.#length++
    this.#ready.push(item)
  }

  /** When the first item that only waits for its time is due; undefined where none is ready. */
  nextDue(): number | undefined {
    return this.#ready.first?.dueAt
  }

  clear(): void {
    this.#ready.clear()
    this.#keys.clear()
    this.#length = 0
  }
}
