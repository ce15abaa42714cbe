/**
 * Which offset of one partition may be committed.
 *
 * Items are added in offset order and settled in any order. The frontier is the offset behind the longest settled run
 * from the start: everything below it is settled. It steps from record to record and not by one, since offsets have
 * gaps (compaction, transaction markers); behind the last record of a batch it is the offset behind the whole batch.
 *
 * What is settled beyond it is known too, so that it need not be done again by who comes after (see done-beyond.ts).
 *
 * Must never happen: the frontier passes an unsettled item; the frontier falls; an unsettled item in `beyond()`.
 */
import { Deque } from './deque'
import type { OffsetRange } from './done-beyond'

export interface Tracked {
  settled: boolean
  /** The record's own offset, decimal text as the client gives it; made a bigint only where a commit needs it. */
  readonly offset: string
  /** For the last record of a batch: the offset behind the batch. */
  tail: bigint | undefined
  /** Of all that the tracker was given, the how many-eth; set by it. There from the start: an object that grows is dear. */
  place?: number
}

export class CommitTracker<T extends Tracked> {
  readonly #items = new Deque<Tracked>()
  #added = 0
  #base: bigint
  /** The last item of the settled run; its end is the frontier. */
  #passed: Tracked | undefined
  /** Settled items that the frontier has not passed. */
  #beyond = 0

  constructor(start: bigint) {
    this.#base = start
  }

  /** Items between the frontier and the last one added, settled or not. */
  get length(): number {
    return this.#items.length
  }

  /** Of these, the settled ones: they wait for the frontier. */
  get settledBeyond(): number {
    return this.#beyond
  }

  add(item: T): void {
    item.place = this.#added++
    this.#items.push(item)
  }

  /** Returns whether the frontier has moved. Settling an item twice changes nothing. */
  settle(item: T): boolean {
    if (item.settled) return false
    item.settled = true
    if (item !== this.#items.first) {
      this.#beyond++
      // What waits for the frontier may be very many, and must not keep the records themselves in memory.
      const { place = 0, offset, tail } = item
      this.#items.set(place - (this.#added - this.#items.length), { settled: true, offset, tail, place })
      return false
    }
    this.#passed = this.#items.shift()
    for (let first = this.#items.first; first?.settled; first = this.#items.first) {
      this.#passed = this.#items.shift()
      this.#beyond--
    }
    return true
  }

  /**
   * What is settled beyond the frontier, in order. Between two items that follow each other there is no record, so a
   * range goes on over the gap.
   */
  beyond(): OffsetRange[] {
    if (this.#beyond === 0) return []
    const ranges: OffsetRange[] = []
    let first: Tracked | undefined
    let last: Tracked | undefined
    for (const item of this.#items) {
      if (item.settled) {
        first ??= item
        last = item
      } else if (first && last) {
        ranges.push({ from: BigInt(first.offset), to: endOf(last) })
        first = undefined
      }
    }
    if (first && last) ranges.push({ from: BigInt(first.offset), to: endOf(last) })
    return ranges
  }

  /**
   * Where the frontier would stand, and what would be settled beyond it, if these items were settled too: for a commit that
   * is to be made together with what settles them.
   */
  asIf(settled: ReadonlySet<Tracked>): { frontier: bigint; beyond: OffsetRange[]; unpassed: number } {
    let { frontier } = this
    let passed = 0
    const beyond: OffsetRange[] = []
    let first: Tracked | undefined
    let last: Tracked | undefined
    const close = (): void => {
      if (first && last) beyond.push({ from: BigInt(first.offset), to: endOf(last) })
      first = undefined
    }
    let inFront = true
    for (const item of this.#items) {
      const done = item.settled || settled.has(item)
      if (inFront && done) {
        passed++
        frontier = endOf(item)
        continue
      }
      inFront = false
      if (done) {
        first ??= item
        last = item
      } else close()
    }
    close()
    return { frontier, beyond, unpassed: this.length - passed }
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

  /** The offset behind the last item. */
  get end(): bigint {
    const { last } = this.#items
    return last ? endOf(last) : this.frontier
  }

  get frontier(): bigint {
    if (this.#passed) {
      this.#base = endOf(this.#passed)
      this.#passed = undefined
    }
    return this.#base
  }
}

/** The offset behind the item. */
export function endOf({ offset, tail }: Tracked): bigint {
  return tail ?? BigInt(offset) + 1n
}
