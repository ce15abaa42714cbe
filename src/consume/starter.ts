/**
 * Which record starts next, on which of the group's handler places.
 *
 * A place:  free -> taken (a record has started) -> free, or taken over by the next record of the same lane.
 *   - a lane that finds no free place waits its turn; who gives a place back goes behind those who wait.
 *   - handlers that never wait for anything give the event loop a turn every so often (see turns.ts).
 *
 * Must never happen: more records at work than there are places; a place lost; a lane that could start a record and that
 * nobody asks again; a record started where `mayStart` says no.
 */
import type { Clock } from '../ports'
import type { Entry, Lane } from './lane'
import { createTurns } from './turns'

export interface StarterOptions {
  readonly clock: Clock
  readonly concurrency: number
  /** Whether records wait until they are due. */
  readonly gated: boolean
  mayStart(lane: Lane): boolean
  /** The lane has come, or comes soon, to where it may not start records before that is known at the broker. */
  hurry(lane: Lane): void
  /** A record that waited is due: what it needs to start. */
  prepare(lane: Lane, entry: Entry): void
  /** Takes the place until `released`, which may be called from inside. */
  start(lane: Lane, entry: Entry): void
}

export class Starter {
  readonly #options: StarterOptions
  readonly #turns: ReturnType<typeof createTurns<Lane>>
  #free: number
  /** A pump is under way; lanes that ask for one meanwhile. */
  #pumping = false
  readonly #toPump = new Set<Lane>()
  /** Who is told of a free place before the lanes are. */
  readonly #wanted = new Set<() => void>()

  constructor(options: StarterOptions) {
    this.#options = options
    this.#free = options.concurrency
    this.#turns = createTurns(options.clock, (lane) => this.pump(lane))
  }

  /** Places that are taken. */
  get running(): number {
    return this.#options.concurrency - this.#free
  }

  /** About the present time, monotonic, ms. */
  now(): number {
    return this.#turns.now()
  }

  /**
   * Starts what may start. A record that ends as it starts (another group's, say) asks for the next one from inside: that
   * is done in turn, since thousands of such records in a row would be as many calls on the stack.
   */
  pump(lane: Lane): void {
    if (this.#pumping) {
      this.#toPump.add(lane)
      return
    }
    this.#pumping = true
    try {
      this.#startSome(lane)
      // What is added meanwhile comes up too.
      for (const next of this.#toPump) {
        this.#toPump.delete(next)
        this.#startSome(next)
      }
    } finally {
      this.#pumping = false
    }
  }

  #startSome(lane: Lane): void {
    const { gated } = this.#options
    if (lane.queue.length === 0 || !this.#options.mayStart(lane)) return
    for (;;) {
      if (this.#free === 0) {
        this.#turns.wait(lane)
        return
      }
      if (this.#turns.isLong()) {
        // Handlers that never wait for anything must not keep timers, heartbeats and fetches from running.
        this.#turns.later(lane)
        return
      }
      const entry = this.#take(lane)
      if (!entry) break
      this.#free--
      lane.running++
      this.#options.start(lane, entry)
      if (!this.#options.mayStart(lane)) return
    }
    if (gated) this.#armDue(lane)
  }

  /** Whether a place is free. Where none is, `then` is called when one is: lanes with a backlog would leave none, ever. */
  hasPlace(then: () => void): boolean {
    if (this.#free > 0) return true
    this.#wanted.add(then)
    return false
  }

  /** Starts a record that is in no queue any more, on a place that is free. */
  startThis(lane: Lane, entry: Entry): void {
    this.#free--
    lane.running++
    this.#options.start(lane, entry)
  }

  #take(lane: Lane): Entry | undefined {
    const entry = lane.queue.take(this.#options.gated ? this.#options.clock.now() : 0, lane.limit)
    if (entry === undefined) {
      if (lane.queue.beyond !== undefined) this.#options.hurry(lane)
      return undefined
    }
    this.#reached(lane, entry.seq)
    if (this.#options.gated) this.#options.prepare(lane, entry)
    return entry
  }

  /** These, in the order of their numbers, start on one place with the first of them. */
  together(lane: Lane, entries: readonly Entry[]): void {
    if (this.#options.gated) for (const entry of entries) this.#options.prepare(lane, entry)
    this.#reached(lane, entries[entries.length - 1]!.seq)
  }

  /** The record with this number is being started. */
  #reached(lane: Lane, seq: number): void {
    if (seq < lane.reach) return
    lane.reach = seq + 1
    if (lane.reach >= lane.hurryAt) this.#options.hurry(lane)
  }

  #armDue(lane: Lane): void {
    // Asked again when the limit moves.
    if (lane.queue.beyond !== undefined) return
    const due = lane.queue.nextDue()
    lane.dueTimer?.cancel()
    lane.dueTimer = undefined
    if (due === undefined) return
    lane.dueTimer = this.#options.clock.at(due, () => {
      lane.dueTimer = undefined
      this.pump(lane)
    })
  }

  /** The place is free, and nobody is asked to take it: for a stop. */
  giveBack(lane: Lane): void {
    this.#free++
    lane.running--
  }

  /** The record's key is free; its place is not, where others of its batch stay on it. */
  letGo(lane: Lane, entry: Entry, then: 'next' | 'again' | 'aside'): void {
    if (then === 'again') lane.queue.putBack(entry)
    else if (then === 'next' && !lane.closed) lane.queue.release(entry)
  }

  /**
   * The place is free, and so is the record's key. With `again` the record itself goes first; one that was set `aside` keeps
   * its key.
   */
  released(lane: Lane, entry: Entry, then: 'next' | 'again' | 'aside' = 'next'): void {
    this.giveBack(lane)
    this.letGo(lane, entry, then)
    const [wanted] = this.#wanted
    if (wanted !== undefined) {
      this.#wanted.delete(wanted)
      wanted()
    }
    const first = this.#free > 0 ? this.#turns.next() : undefined
    if (first === undefined) {
      this.pump(lane)
      return
    }
    // Others wait for a place: this lane goes behind them.
    if (lane.queue.length > 0 && !lane.closed) this.#turns.wait(lane)
    // One that may start nothing now (in trouble, paused, not due, closed) must not use up the turn of those behind it.
    for (let next: Lane | undefined = first; next; next = this.#free > 0 ? this.#turns.next() : undefined)
      this.pump(next)
  }

  /** Whether the lane's next record may have the place of the one that has just ended. */
  mayGoOn(lane: Lane): boolean {
    return !this.#turns.crowded && this.#wanted.size === 0 && this.#options.mayStart(lane) && !this.#turns.isLong()
  }

  /** The lane's next record, for the place of this one; undefined where there is none and the place is given back. */
  next(lane: Lane, entry: Entry): Entry | undefined {
    lane.queue.release(entry)
    const next = this.#take(lane)
    if (next !== undefined) return next
    this.giveBack(lane)
    if (this.#options.gated) this.#armDue(lane)
    return undefined
  }
}
