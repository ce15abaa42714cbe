import type { Timer } from '../ports'

/** `wait`: stands still while work is running; `deadline`: guards running work, so may fire while that is stuck. */
export type Purpose = 'wait' | 'deadline'

/** One timer of the manual clock. `wall` timers are due at a wall time, the others at a monotonic one. */
export interface Entry {
  readonly at: number
  readonly wall: boolean
  readonly order: number
  readonly purpose: Purpose
  /** The work in whose course the timer was set, if any. */
  readonly owner: unknown
  readonly fire: () => void
  state: 'waiting' | 'gone'
}

/**
 * Timers by due time, ties by order of insertion: a binary heap. A cancelled timer stays in it until it comes to the
 * top or until half of the heap is such; a handler's time-out is nearly always cancelled, so removal must cost nothing.
 */
export class TimerQueue {
  private heap: Entry[] = []
  private gone = 0
  private inserted = 0
  /** Wall time minus monotonic time. */
  private offset: number

  constructor(offset: number) {
    this.offset = offset
  }

  add(timer: Omit<Entry, 'order' | 'state'>): Timer {
    const entry: Entry = { ...timer, order: this.inserted++, state: 'waiting' }
    this.heap.push(entry)
    this.up(this.heap.length - 1)
    return {
      cancel: () => {
        if (entry.state === 'gone') return
        entry.state = 'gone'
        this.gone++
        if (this.gone > 64 && this.gone > this.heap.length / 2) this.rebuild()
      },
    }
  }

  /** Takes out the first timer due at `until` or before, of those that `may` fire. */
  take(until: number, may?: (entry: Entry) => boolean): Entry | undefined {
    this.dropGone()
    const first = may ? this.search(may) : this.heap[0]
    if (first === undefined || this.due(first) > until) return undefined
    first.state = 'gone'
    this.gone++
    this.dropGone()
    return first
  }

  /** Monotonic time at which an entry is due. */
  due(entry: Entry): number {
    return entry.wall ? entry.at - this.offset : entry.at
  }

  /** The wall clock jumped against the monotonic one. */
  shift(offset: number): void {
    this.offset = offset
    this.rebuild()
  }

  get size(): number {
    return this.heap.length - this.gone
  }

  private search(may: (entry: Entry) => boolean): Entry | undefined {
    let best: Entry | undefined
    for (const entry of this.heap) {
      if (entry.state === 'waiting' && may(entry) && (best === undefined || this.before(entry, best))) best = entry
    }
    return best
  }

  private before(a: Entry, b: Entry): boolean {
    const difference = this.due(a) - this.due(b)
    return difference !== 0 ? difference < 0 : a.order < b.order
  }

  private dropGone(): void {
    while (this.heap[0]?.state === 'gone') {
      this.gone--
      const last = this.heap.pop()
      if (this.heap.length > 0 && last !== undefined) {
        this.heap[0] = last
        this.down(0)
      }
    }
  }

  private rebuild(): void {
    this.heap = this.heap.filter((entry) => entry.state === 'waiting').sort((a, b) => (this.before(a, b) ? -1 : 1))
    this.gone = 0
  }

  private up(from: number): void {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.swapIfBefore(at, parent)) return
      at = parent
    }
  }

  private down(from: number): void {
    let at = from
    for (;;) {
      const left = 2 * at + 1
      const child = this.isBefore(left + 1, left) ? left + 1 : left
      if (!this.swapIfBefore(child, at)) return
      at = child
    }
  }

  private isBefore(i: number, j: number): boolean {
    const a = this.heap[i]
    const b = this.heap[j]
    return a !== undefined && b !== undefined && this.before(a, b)
  }

  private swapIfBefore(i: number, j: number): boolean {
    const a = this.heap[i]
    const b = this.heap[j]
    if (a === undefined || b === undefined || !this.before(a, b)) return false
    this.heap[i] = b
    this.heap[j] = a
    return true
  }
}
