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
 *     Before that it is asked who is a member: a process that was put out of the group, with a commit refused or its client
 *     crashed, leaves the same marks as a dead one, but comes back. Its deaths are none.
 *   - a record that ends, in whatever way, is suspicious no longer.
 *
 * A careful record:  taken (has a handler's place) -> waits to be alone -> waits for its mark -> running -> ended
 *   - what cannot start when its mark is acknowledged (a rebalance, a pause) goes back to its place.
 *   - taken, with `crashLimit` deaths -> asked who lives -> back to its place, with fewer deaths
 *                                                        -> waits to be alone -> dead-lettered
 *
 * Must never happen: a handler of a suspicious record called without its mark at the broker; a death counted against a
 * record that was not running, or had ended; a place, or the process, kept by a record of a closed lane.
 */
import type { Emitter } from '../observe'
import type { Clock } from '../ports'
import type { Alone, Turn } from './alone'
import { MAX_BY, type CrashMarks } from './crash-marks'
import { unpackDone } from './done-beyond'
import type { Commit, Entry, Lane } from './lane'
import { LaneMarks, type Caution, type Deaths, type MarkedRecord } from './lane-marks'

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const NONE: Deaths = { count: 0, by: [] }

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
  /** By it we know our own marks, and others see that we live: where we wrote them, nobody has died (`newWho`). */
  readonly who: string
  /** Who of those that write marks is at work in the group; undefined where that cannot be found out. Never rejects. */
  alive(lane: Lane): Promise<ReadonlySet<string> | undefined>
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

  constructor(private readonly options: CrashGuardOptions) {}

  /** Records that have a handler's place and are not at work. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** A new lane, which is not open yet. */
  watch(lane: Lane): void {
    const { atLeast, commitIntervalMs, clock, who } = this.options
    lane.marks = new LaneMarks(who, atLeast, INTERVALS * commitIntervalMs, clock)
    lane.limit = 0
  }

  /** The lane has been opened on a commit with these marks. */
  opened(lane: Lane, { open, careful, carefulBy, suspects }: CrashMarks): void {
    const died = open !== undefined && open.by !== this.options.who ? open : undefined
    const until = died ? Math.max(died.records, careful) : careful
    const deaths = suspects.map((one): [bigint, Deaths] => [
      one.offset,
      died && one.running
        ? { count: one.deaths + 1, by: [...one.by, died.by].slice(-MAX_BY) }
        : { count: one.deaths, by: one.by },
    ])
    if (until === 0 && deaths.length === 0) return
    lane.caution = { until, by: died?.by ?? carefulBy, suspects: new Map(deaths), running: undefined }
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
  start(lane: Lane, entry: Entry, caution: Caution): void {
    const { crashLimit, run } = this.options
    // Its call of before runs here, in a process that lives: it joins that.
    if (lane.unfinished?.has(entry.offset)) return run(lane, entry)
    const offset = BigInt(entry.offset)
    const deaths = deathsOf(caution, offset, entry.seq)
    const letter = deaths.count >= crashLimit
    if (!letter && deaths.count === 0) return run(lane, entry)
    const waiting: Waiting = { entry, mark: undefined, letter }
    this.#waiting.set(lane, waiting)
    if (letter) {
      void this.#confirm(lane, waiting, caution, deaths)
      return
    }
    const mark = (counts: boolean): void => this.#mark(lane, waiting, { offset, deaths, counts })
    if (deaths.count < 2 && deaths.count + 1 < crashLimit) mark(true)
    else this.#ask(lane, undefined, mark)
  }

  /** Dead-letters the record, unless some of those that are held to have died under it live. */
  async #confirm(lane: Lane, waiting: Waiting, caution: Caution, { count, by }: Deaths): Promise<void> {
    const { alive, crashLimit, crashLoop, who } = this.options
    const { entry } = waiting
    const living = by.length > 0 ? await alive(lane) : undefined
    // The lane is closed, or the group stops.
    if (this.#waiting.get(lane) !== waiting) return
    const dead = by.filter((one) => one !== who && living?.has(one) !== true)
    const left: Deaths = { count: count - (by.length - dead.length), by: dead }
    const offset = BigInt(entry.offset)
    if (left.count < crashLimit) {
      caution.suspects.set(offset, left)
      this.#waiting.delete(lane)
      this.#postpone(lane, entry)
      return
    }
    this.#ask(lane, offset, () => {
      this.#waiting.delete(lane)
      if (!crashLoop(lane, entry, left.count)) this.#giveTurn(lane)
    })
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

/** Four characters of chance. */
export function newWho(random: () => number): string {
  return Array.from({ length: 4 }, () => LETTERS[Math.floor(random() * 64)]).join('')
}

function deathsOf({ suspects, until, by }: Caution, offset: bigint, seq: number): Deaths {
  return suspects.get(offset) ?? (seq < until ? { count: 1, by: by === undefined ? [] : [by] } : NONE)
}

function saysDone({ offset, metadata }: Commit, record: bigint): boolean {
  return (
    record < offset || (unpackDone(offset, metadata)?.some(({ from, to }) => from <= record && record < to) ?? false)
  )
}
