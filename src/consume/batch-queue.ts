/**
 * What waits in a lane whose handler takes many records at once, and which of it goes together. Only with `batchHandler`.
 *
 * Life of an item:  push -> waiting -> taken, with others -> released | put back -> waiting ...
 *   - a batch is made whole by `take`, which gives its first item; `along` gives the others, and must be asked at once.
 *   - of a key (`partition`: all have the same) a batch may hold several, always the first of those that wait, in their
 *     order; while one of them is taken no other batch gets any.
 *   - an item that is not due keeps those behind it in its key waiting, and nothing else.
 *   - `limit` says how many may go together with an item from now on: those that failed for what may be a neighbour's
 *     fault come again in smaller and smaller batches, with nobody but each other.
 *   - with a linger, a batch that is not full waits until the item that could have gone first has waited so long.
 *
 * Must never happen: a key in two batches at once; an item of a key before an earlier one of it, or before it is due; more
 * in a batch than its bounds (one item is always enough for one); a timer left behind by `clear`.
 */
import type { Clock, Timer } from '../ports'
import { Deque } from './deque'
import { DueHeap, before } from './due-heap'
import type { Waiting } from './lane-queue'

export interface BatchItem extends Waiting {
  readonly bytes: number
}

export interface BatchBounds<T> {
  /** Of the next batch: fewer than usual where the lane must go slowly. */
  maxRecords(): number
  readonly maxBytes: number
  readonly lingerMs: number
  readonly clock: Clock
  /** Whether the item is not to be handled together with any other. */
  isAlone(item: T): boolean
  /** A linger is over: `take` is to be asked again. */
  wake(): void
}

interface Key<T> {
  /** Items of the batch under way. */
  taken: number
  /** Put back, in order: they go before those behind. */
  back: Deque<T> | undefined
  readonly behind: Deque<T>
}

export class BatchQueue<T extends BatchItem> {
  /** The first item of each key that is free, and items that are bound to nothing. */
  readonly #ready = new DueHeap<T>()
  readonly #keys = new Map<string, Key<T>>()
  /** How many may go together with an item; those that are not here go with as many as there may be. */
  readonly #limits = new Map<T, number>()
  /** When an item came, monotonic, ms; kept only where batches linger. */
  readonly #cameAt = new Map<T, number>()
  #along: T[] = []
  /** The number of the item that was not given out for the limit, at the last take. */
  beyond: number | undefined
  #length = 0
  #linger: Timer | undefined

  constructor(private readonly bounds: BatchBounds<T>) {}

  /** Items that have not been taken. */
  get length(): number {
    return this.#length
  }

  push(item: T): void {
    this.#length++
    const { lingerMs, clock } = this.bounds
    if (lingerMs > 0) this.#cameAt.set(item, clock.monotonic())
    const { orderKey } = item
    if (orderKey !== undefined) {
      const key = this.#keys.get(orderKey)
      if (key) {
        key.behind.push(item)
        return
      }
      this.#keys.set(orderKey, { taken: 0, back: undefined, behind: new Deque() })
    }
    this.#ready.push(item)
  }

  /**
   * The first of the items that are to be handled together now, or undefined. `now`: ms since the epoch; 0 on a main topic.
   * None of them has a number that is not below the limit.
   */
  take(now: number, limit = Infinity): T | undefined {
    this.beyond = undefined
    const { batch, isFull } = this.#compose(now, limit)
    const [first] = batch
    if (first === undefined) return undefined
    const left = isFull ? 0 : this.#lingersFor(batch, now)
    this.#linger?.cancel()
    this.#linger = undefined
    if (left > 0) {
      for (const item of batch) this.putBack(item)
      this.#linger = this.bounds.clock.after(left, () => {
        this.#linger = undefined
        this.bounds.wake()
      })
      return undefined
    }
    for (const item of batch) this.#cameAt.delete(item)
    batch.sort((a, b) => a.seq - b.seq)
    this.#along = batch
    return batch[0]
  }

  /** What was taken together with this item; asked once, right behind `take`. */
  along(first: T): T[] {
    const batch = this.#along
    this.#along = []
    return batch[0] === first ? batch.slice(1) : []
  }

  #compose(now: number, below: number): { batch: T[]; isFull: boolean } {
    const { bounds } = this
    const batch: T[] = []
    /** Of the keys of this batch, the next item each. */
    const followers = new DueHeap<T>()
    let bytes = 0
    let most = bounds.maxRecords()
    let limit: number | undefined
    while (batch.length < most) {
      const isFollower = isBefore(followers.first, this.#ready.first)
      const source = isFollower ? followers : this.#ready
      const next = source.first
      if (next === undefined || next.dueAt > now) return { batch, isFull: false }
      if (next.seq >= below) {
        this.beyond = next.seq
        break
      }
      if (batch.length === 0) {
        limit = this.#limits.get(next)
        most = bounds.isAlone(next) ? 1 : Math.min(most, limit ?? most)
      } else {
        const fits = bytes + next.bytes <= bounds.maxBytes && this.#limits.get(next) === limit && !bounds.isAlone(next)
        if (!fits) break
      }
      source.shift()
      batch.push(next)
      bytes += next.bytes
      this.#length--
      const key = next.orderKey === undefined ? undefined : this.#keys.get(next.orderKey)
      if (key === undefined) continue
      key.taken++
      if (isFollower) shiftOf(key)
      const follower = key.back?.first ?? key.behind.first
      if (follower !== undefined) followers.push(follower)
    }
    return { batch, isFull: true }
  }

  /** How long a batch that is not full is still to wait for more, ms. */
  #lingersFor(batch: readonly T[], now: number): number {
    const { lingerMs, clock } = this.bounds
    if (lingerMs === 0) return 0
    const at = clock.monotonic()
    let longest = 0
    for (const item of batch) {
      const waited = at - (this.#cameAt.get(item) ?? -Infinity)
      // A retry waits for others from when it was due, by the wall clock; the main topic has no such time, and no `now`.
      longest = Math.max(longest, item.dueAt === 0 ? waited : Math.min(waited, now - item.dueAt))
    }
    return lingerMs - longest
  }

  /** No more than so many go together with the item from now on, all of them such. */
  limit(item: T, most: number): void {
    this.#limits.set(item, most)
  }

  /** The item has run: of its key, the next may start as soon as all that were taken have. */
  release(item: T): void {
    this.#limits.delete(item)
    const key = item.orderKey === undefined ? undefined : this.#keys.get(item.orderKey)
    if (key === undefined) return
    key.taken--
    this.#freed(item.orderKey!, key)
  }

  /** The item is to run again, before anything later of its key. */
  putBack(item: T): void {
    this.#length++
    const key = item.orderKey === undefined ? undefined : this.#keys.get(item.orderKey)
    if (key === undefined) {
      this.#ready.push(item)
      return
    }
    key.taken--
    putInOrder((key.back ??= new Deque()), item)
    this.#freed(item.orderKey!, key)
  }

  #freed(name: string, key: Key<T>): void {
    if (key.taken > 0) return
    const next = shiftOf(key)
    if (next !== undefined) this.#ready.push(next)
    else this.#keys.delete(name)
  }

  /** When the first item that only waits for its time is due; undefined where none is, or where a linger decides. */
  nextDue(): number | undefined {
    return this.#linger === undefined ? this.#ready.first?.dueAt : undefined
  }

  clear(): void {
    this.#linger?.cancel()
    this.#linger = undefined
    this.#ready.clear()
    this.#keys.clear()
    this.#limits.clear()
    this.#cameAt.clear()
    this.#along = []
    this.#length = 0
  }
}

function isBefore<T extends Waiting>(a: T | undefined, b: T | undefined): boolean {
  return a !== undefined && (b === undefined || before(a, b))
}

function shiftOf<T>({ back, behind }: Key<T>): T | undefined {
  return back?.shift() ?? behind.shift()
}

/** Nearly always they come in order. */
function putInOrder<T extends Waiting>(back: Deque<T>, item: T): void {
  if (back.last === undefined || back.last.seq < item.seq) {
    back.push(item)
    return
  }
  const all = [...back, item].sort((a, b) => a.seq - b.seq)
  back.clear()
  for (const one of all) back.push(one)
}
