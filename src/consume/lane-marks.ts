/**
 * What a lane's commits say of deaths, and how far the lane may go on what was said (see crash-marks.ts for the text).
 *
 * A lane may start a record only where the broker knows that it may have: where an acknowledged commit's open mark covers
 * it. So that this costs nothing for a single record, each commit covers more records than have started: a reserve, of what
 * the lane starts in a few commit intervals. It is measured over a span of time and not from commit to commit: a commit that
 * another lane has asked for may come when this one has started nothing yet. It is raised in few steps: records that wait for
 * a commit live long, and V8 then allocates kafkajs's arrays among the old objects, for good, where each keeps all its
 * records until the next full collection (measured: 2.6 us a record in place of 2.0).
 *
 * A lane:  not marked -> (first record, or first position) open -> open, further -> ... -> clean (a rebalance, a stop)
 *   - a commit that fails lifts the limit until one succeeds: handling goes on where the guard cannot be.
 *   - `clean`, when the lane is kept, becomes open again without a wait.
 *
 * Must never happen: a record started that no acknowledged mark covers, but for the two cases above; a limit that is never
 * moved again; a commit for each record.
 */
import type { Clock } from '../ports'
import { NO_MARKS, type CrashMarks, type Suspect } from './crash-marks'

/** At this many a lane is as fast as without a guard; after a death these are handled one at a time. */
export const MAX_RESERVE = 20_000
const NO_LIMIT = Number.MAX_SAFE_INTEGER
/** What was started in less time says nothing of the lane's pace, ms. */
const SPAN_MS = 100
/** About how long a commit takes at least: what was started before one was answered, ms. */
const ANSWER_MS = 10

/** Processes that died, as it seems, while a record may have been running. */
export interface Deaths {
  readonly count: number
  /** The last of them, by their marks. */
  readonly by: readonly string[]
}

/** A record that may not run unless it is marked so. */
export interface MarkedRecord {
  readonly offset: bigint
  readonly deaths: Deaths
  /** Whether a death while it runs is counted against it. */
  readonly counts: boolean
}

export interface Caution {
  /** Records with a lower number are suspicious. */
  readonly until: number
  /** Whose death makes them so; undefined where that is not known. */
  readonly by: string | undefined
  /** Of single records, by offset. */
  readonly suspects: Map<bigint, Deaths>
  running: MarkedRecord | undefined
}

/** Of a lane, what its marks depend on and move. */
interface Marked {
  readonly reach: number
  readonly queue: { readonly beyond: number | undefined }
  readonly caution: Caution | undefined
  limit: number
  hurryAt: number
  dirty: boolean
}

/** What a commit says beside its offset, and what follows from it once it is acknowledged. */
export interface MarkDraft {
  readonly marks: CrashMarks
  readonly limit: number
  readonly hurryAt: number
  readonly reach: number
  readonly reserve: number
  /** The lane's pace is measured anew from here on, monotonic, ms; undefined where the span goes on. */
  readonly measuredAt: number | undefined
  readonly running: MarkedRecord | undefined
}

export class LaneMarks {
  /** The next commits end the lane's work, for now. */
  clean = false
  /** An open mark of ours may stand at the broker. */
  marked = false
  /** The record that the last acknowledged commit marks as running. */
  acknowledged: MarkedRecord | undefined
  #reserve: number
  /** Where the lane stood when the measuring began, and when that was, monotonic, ms. */
  #reachBefore = 0
  #measuredAt = -Infinity
  /** The reserve was more than half used up. */
  hurried = false

  constructor(
    /** Four characters of chance: by them a writer knows what it wrote itself. */
    private readonly who: string,
    /** The least reserve: so many start at once without telling anything of the lane's pace. */
    private readonly floor: number,
    /** The reserve is to last so long, ms. */
    private readonly coverMs: number,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {
    this.#reserve = floor
  }

  /** `frontier` and `passed`: where the lane stands, or will stand, by this commit. */
  draft(lane: Marked, frontier: bigint, passed: number): MarkDraft {
    const now = this.clock.monotonic()
    const measured = this.hurried || now - this.#measuredAt >= SPAN_MS
    const reserve = measured ? this.#reserveFor(lane.reach - this.#reachBefore, now - this.#measuredAt) : this.#reserve
    const reach = Math.max(lane.reach, (lane.queue.beyond ?? -1) + 1)
    const { caution } = lane
    const running = this.clean ? undefined : caution?.running
    const limit = reach + reserve
    const careful = caution ? Math.max(0, caution.until - passed) : 0
    const suspects = caution ? suspectsOf(caution, running, frontier) : []
    const open = this.clean ? undefined : { records: Math.max(limit - passed, careful), by: this.who }
    const carefulBy = careful > 0 ? caution?.by : undefined
    const marks = open || careful > 0 || suspects.length > 0 ? { open, careful, carefulBy, suspects } : NO_MARKS
    const measuredAt = measured ? now : undefined
    return { marks, limit, hurryAt: reach + Math.ceil(reserve / 2), reach: lane.reach, reserve, measuredAt, running }
  }

  #reserveFor(started: number, ms: number): number {
    const atThisPace = this.hurried
      ? Math.max(2 * this.#reserve, ((started - this.floor) / Math.max(ms, ANSWER_MS)) * this.coverMs)
      : (started / ms) * this.coverMs
    return Math.max(this.floor, Math.min(Math.ceil(atThisPace), MAX_RESERVE))
  }

  sent(lane: Marked, { marks, limit, reach, reserve, measuredAt }: MarkDraft): void {
    if (marks.open) {
      this.marked = true
      // From now on the broker may hold this one, which covers less than the one before where the lane has become slower.
      if (lane.limit !== NO_LIMIT) lane.limit = Math.min(lane.limit, limit)
    }
    this.#reserve = reserve
    if (measuredAt !== undefined) {
      this.#reachBefore = reach
      this.#measuredAt = measuredAt
    }
    this.hurried = false
  }

  acknowledge(lane: Marked, { marks, limit, hurryAt, running }: MarkDraft): void {
    this.acknowledged = running
    if (marks.open === undefined) {
      this.marked = false
      return
    }
    lane.limit = limit
    lane.hurryAt = hurryAt
  }

  /** The commit failed, or is late. */
  lift(lane: Marked): void {
    lane.limit = lane.hurryAt = NO_LIMIT
  }

  /** The lane's work ends, for now: the next commit says so. Returns whether there is anything to say. */
  end(lane: Marked): boolean {
    this.clean = true
    if (this.marked) lane.dirty = true
    return this.marked
  }

  /** A kept lane goes on, and does not wait until the broker knows. */
  again(lane: Marked): void {
    this.clean = false
    if (!this.marked && lane.limit === 0) return
    lane.dirty = true
    lane.limit = Math.max(lane.limit, lane.reach + this.#reserve)
  }
}

function suspectsOf(caution: Caution, running: MarkedRecord | undefined, frontier: bigint): Suspect[] {
  const list: Suspect[] = []
  const add = (offset: bigint, { count, by }: Deaths, runs: boolean): void =>
    void list.push({ offset, deaths: count, by, running: runs })
  for (const [offset, deaths] of caution.suspects) {
    if (offset >= frontier && offset !== running?.offset) add(offset, deaths, false)
  }
  if (running) add(running.offset, running.deaths, running.counts)
  return list
}
