/**
 * Finds the record that takes the process down with it. One for each group.
 *
 * A lane:  (opened on an open mark of somebody who is gone) -> careful -> (all that may have been the cause is past) normal
 *   - careful: one record at a time. Each that is suspicious is marked as running in an acknowledged commit before its
 *     handler starts; the next owner that finds the mark counts one death more. The death that led to this is the first.
 *   - a record with two deaths or more, or one that the next death would make a dead letter, runs alone in the process:
 *     whatever else runs could be the cause. It stays alone until the broker knows that it has ended.
 *   - a record with `crashLimit` deaths is dead-lettered, and its handler is not called. That is done alone too, and until the
 *     broker knows that the record is done: what takes the process down between the two would have it dead-lettered again.
 *   - a record that ends, in whatever way, is suspicious no longer.
 *
 * A careful record:  taken (has a handler's place) -> waits to be alone -> waits for its mark -> running -> ended
 *   - what cannot start when its mark is acknowledged (a rebalance, a pause) goes back to its place.
 *
 * Must never happen: a handler of a suspicious record called without its mark at the broker; a death counted against a
 * record that was not running, or had ended; a place, or the process, kept by a record of a closed lane.
 */
import type { Emitter } from '../observe'
import type { Clock } from '../ports'
import type { Alone, Turn } from './alone'
import type { CrashMarks } from './crash-marks'
import { unpackDone } from './done-beyond'
import type { Commit, Entry, Lane } from './lane'
import { LaneMarks, type Caution, type MarkedRecord } from './lane-marks'

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** A lane's reserve is for so many commit intervals, so that commits that come anyway raise it in time. */
const INTERVALS = 3

export interface CrashGuardOptions {
  readonly crashLimit: number
  /** So many records may always start beyond what was committed. */
  readonly atLeast: number
  readonly commitIntervalMs: number
  readonly clock: Clock
  readonly emitter: Emitter
  readonly alone: Alone
  readonly random: () => number
  /** Whether the lane may start a record now, whatever the guard says. */
  mayRun(lane: Lane): boolean
  run(lane: Lane, entry: Entry): void
  /** The record goes back to its place; its handler's place is free. */
  postpone(lane: Lane, entry: Entry): void
  /** Returns whether the record is on its way; where not, it is back in its place. */
  crashLoop(lane: Lane, entry: Entry, deaths: number): boolean
  /** The next commit is waited for. */
  hurry(): void
}

/** A record that has a handler's place and waits for its mark. */
interface Waiting {
  readonly entry: Entry
  mark: MarkedRecord | undefined
  /** It is to be a dead letter. */
  readonly letter: boolean
}

interface Held {
  readonly turn: Turn
  /** `ended`: the record has, and the broker does not know it yet. `late`: a death is to be counted no longer, likewise. */
  state: 'needed' | 'ended' | 'late'
  /** The offset of a record that becomes a dead letter. */
  readonly letter: bigint | undefined
}

export class CrashGuard {
  readonly #waiting = new Map<Lane, Waiting>()
  readonly #asking = new Map<Lane, Turn>()
  readonly #alone = new Map<Lane, Held>()
  /** By it we know our own marks: where we wrote them, nobody has died. */
  readonly #who: string

  constructor(private readonly options: CrashGuardOptions) {
    this.#who = Array.from({ length: 4 }, () => LETTERS[Math.floor(options.random() * 64)]).join('')
  }

  /** Records that have a handler's place and are not at work. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** A new lane, which is not open yet. */
  watch(lane: Lane): void {
    const { atLeast, commitIntervalMs, clock } = this.options
    lane.marks = new LaneMarks(this.#who, atLeast, INTERVALS * commitIntervalMs, clock)
    lane.limit = 0
  }

  /** The lane has been opened on a commit with these marks. */
  opened(lane: Lane, { open, careful, suspects }: CrashMarks): void {
    const died = open !== undefined && open.by !== this.#who
    const until = died ? Math.max(open.records, careful) : careful
    const deaths = suspects.map((one) => [one.offset, one.deaths + (died && one.running ? 1 : 0)] as const)
    if (until === 0 && deaths.length === 0) return
    lane.caution = { until, suspects: new Map(deaths), running: undefined }
    if (!died) return
    const { tier, topic, partition } = lane
    const offset = (lane.position ?? 0n).toString()
    this.options.emitter.emit('unclean', { tier, topic, partition, offset, records: until, suspects: deaths.length })
  }

  /** Of a careful lane: whether it may start a record. Where nothing is suspicious any more, it is careful no longer. */
  mayStart(lane: Lane, caution: Caution): boolean {
    if (lane.running > 0) return false
    if (lane.passed < caution.until || caution.running !== undefined || this.#alone.has(lane)) return true
    for (const offset of caution.suspects.keys()) if (offset >= lane.tracker.frontier) return true
    lane.caution = undefined
    return true
  }

  /** Of a careful lane. */
  start(lane: Lane, entry: Entry, { suspects, until }: Caution): void {
    const { crashLimit, run, crashLoop } = this.options
    // Its call of before runs here, in a process that lives: it joins that.
    if (lane.unfinished?.has(entry.offset)) return run(lane, entry)
    const offset = BigInt(entry.offset)
    const deaths = suspects.get(offset) ?? (entry.seq < until ? 1 : 0)
    const letter = deaths >= crashLimit
    if (!letter && deaths === 0) return run(lane, entry)
    const waiting: Waiting = { entry, mark: undefined, letter }
    this.#waiting.set(lane, waiting)
    if (letter) {
      this.#ask(lane, offset, () => {
        this.#waiting.delete(lane)
        if (!crashLoop(lane, entry, deaths)) this.#giveTurn(lane)
      })
      return
    }
    const mark = (counts: boolean): void => this.#mark(lane, waiting, { offset, deaths, counts })
    if (deaths < 2 && deaths + 1 < crashLimit) mark(true)
    else this.#ask(lane, undefined, mark)
  }

  /** `then` is told whether the lane is alone in the process; `letter`: the offset of a record that becomes a dead letter. */
  #ask(lane: Lane, letter: bigint | undefined, then: (isAlone: boolean) => void): void {
    let isAlone: boolean | undefined
    const asked: { turn?: Turn } = {}
    const go = (turn: Turn): void => {
      this.#asking.delete(lane)
      if (isAlone) this.#alone.set(lane, { turn, state: 'needed', letter })
      then(isAlone === true)
    }
    const turn = this.options.alone.ask(this.options.clock, {
      granted(yes) {
        isAlone = yes
        // It may be called before `ask` has returned.
        if (asked.turn !== undefined) go(asked.turn)
      },
      late: () => this.#late(lane),
    })
    asked.turn = turn
    if (isAlone === undefined) this.#asking.set(lane, turn)
    else go(turn)
  }

  #mark(lane: Lane, waiting: Waiting, mark: MarkedRecord): void {
    waiting.mark = mark
    if (lane.caution) lane.caution.running = mark
    lane.dirty = true
    this.options.hurry()
  }

  /** A commit of the lane was acknowledged; or its marks find no room at the broker, and it is guarded no longer. */
  said(lane: Lane): void {
    const unguarded = lane.marks === undefined
    const acknowledged = lane.marks?.acknowledged
    const held = this.#alone.get(lane)
    if (held && (unguarded || this.#isKnown(lane, held))) this.#giveTurn(lane)
    const waiting = this.#waiting.get(lane)
    if (waiting === undefined || waiting.letter) return
    if (!unguarded && (waiting.mark === undefined || acknowledged !== waiting.mark)) return
    this.#waiting.delete(lane)
    this.#asking.get(lane)?.end()
    this.#asking.delete(lane)
    if (this.options.mayRun(lane) && (!this.options.alone.taken || this.#alone.has(lane))) {
      this.options.run(lane, waiting.entry)
    } else this.#postpone(lane, waiting.entry)
  }

  /** Whether the broker knows what the turn of the lane waits for. */
  #isKnown({ marks, committed }: Lane, { state, letter }: Held): boolean {
    if (state === 'needed') return false
    if (letter !== undefined) return committed !== undefined && saysDone(committed, letter)
    // What is marked now, if anything, is not the record that had the turn, or a death does not count against it.
    return state === 'ended' ? marks?.acknowledged === undefined : marks?.acknowledged?.counts === false
  }

  /** The record is done with; of a lane that is alone. */
  settled(lane: Lane, entry: Entry): void {
    const held = this.#alone.get(lane)
    if (held?.letter === undefined || held.letter !== BigInt(entry.offset)) return
    held.state = 'ended'
    // With a transaction it is known at once.
    if (this.#isKnown(lane, held)) this.#giveTurn(lane)
    else this.options.hurry()
  }

  /** The handler's place of a record of a careful lane is about to be given back. */
  ended(lane: Lane, entry: Entry): void {
    const { caution } = lane
    if (caution?.running === undefined || caution.running.offset !== BigInt(entry.offset)) return
    caution.suspects.delete(caution.running.offset)
    this.#clear(lane, caution)
  }

  #clear(lane: Lane, caution: Caution): void {
    caution.running = undefined
    lane.dirty = true
    const held = this.#alone.get(lane)
    if (held?.state === 'needed') held.state = 'ended'
    else if (held) this.#giveTurn(lane)
    this.options.hurry()
  }

  /** The lane's record has been alone for long: it goes on beside others, once the broker knows that a death proves nothing. */
  #late(lane: Lane): void {
    const held = this.#alone.get(lane)
    if (held === undefined) return
    if (held.state === 'ended' || lane.caution?.running === undefined) return this.#giveTurn(lane)
    held.state = 'late'
    lane.caution.running = { ...lane.caution.running, counts: false }
    const waiting = this.#waiting.get(lane)
    lane.dirty = true
    if (waiting) {
      // It has not started, and will not before its mark is known: nothing need stand still for it.
      waiting.mark = lane.caution.running
      this.#giveTurn(lane)
    }
    this.options.hurry()
  }

  #postpone(lane: Lane, entry: Entry): void {
    if (lane.caution?.running) this.#clear(lane, lane.caution)
    this.options.postpone(lane, entry)
  }

  /** Nothing of a closed lane keeps a place or the process. */
  closed(lane: Lane): void {
    this.#giveTurn(lane)
    this.#drop(lane)
  }

  /** The group stops: what waits to start does not start any more. */
  refuse(): void {
    for (const lane of [...this.#waiting.keys()]) this.#drop(lane)
  }

  #drop(lane: Lane): void {
    this.#asking.get(lane)?.end()
    this.#asking.delete(lane)
    const waiting = this.#waiting.get(lane)
    if (waiting === undefined) return
    this.#waiting.delete(lane)
    this.#postpone(lane, waiting.entry)
  }

  #giveTurn(lane: Lane): void {
    const held = this.#alone.get(lane)
    this.#alone.delete(lane)
    held?.turn.end()
  }
}

function saysDone({ offset, metadata }: Commit, record: bigint): boolean {
  return (
    record < offset || (unpackDone(offset, metadata)?.some(({ from, to }) => from <= record && record < to) ?? false)
  )
}
