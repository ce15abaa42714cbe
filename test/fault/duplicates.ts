/**
 * Which second calls are allowed, and why: each must be explained by what happened to the very lane it came from.
 *
 * - `kill`: the worker died with the record in flight, or done and perhaps not committed yet;
 * - `revocation`: the lane was taken away with the record in that state, or its old owner did not know yet that it had been;
 * - `copiedTwice`: the record stands twice, since the attempt before failed twice or an acknowledgement was lost.
 *
 * None of them explains a record that the broker was seen to hold as done before its lane was begun anew: the new owner
 * reads that. So a death explains no more than what was in flight or done since the last commit that anybody saw.
 */
import type { Begin, Happening, Line, Place } from './ledger'
import { groupBy, isHappening, laneOf, nameOf, offsetOf, tierOf, type Call, type Evidence } from './evidence'

/** Clocks are one, but two processes write down the same rebalance a moment apart, ms. */
export const SLACK = 1_000
const UNCOMMITTED = 2_000

export interface Explained {
  readonly counts: { readonly kill: number; readonly revocation: number; readonly copiedTwice: number }
  readonly unexplained: readonly Begin[]
}

export function explainDuplicates(evidence: Evidence, calls: readonly Call[]): Explained {
  const counts = { kill: 0, revocation: 0, copiedTwice: 0 }
  const unexplained: Begin[] = []
  const lanes = new Lanes(evidence)
  const senders = new Set((evidence.main ?? []).flatMap(({ place, sends }) => (sends ? [place] : [])))
  const byAttempt = groupBy(calls, ({ begin }) => nameOf(begin))
  for (const group of byAttempt.values()) {
    if (group.length === 1) continue
    group.sort((a, b) => a.begin.at - b.begin.at)
    for (const [i, { begin }] of group.entries()) {
      if (i === 0) continue
      const before = group.slice(0, i)
      const sends = senders.has(begin.place)
      const sameCopy = before.filter((call) => call.begin.source === begin.source)
      if (sameCopy.length > 0 && lanes.knownAsDone(begin)) unexplained.push(begin)
      else if (sameCopy.some((call) => lanes.diedUnder(call, begin, sends))) counts.kill++
      else if (sameCopy.some((call) => lanes.takenAway(call, begin, sends))) counts.revocation++
      else if (sameCopy.length === 0 && copiedTwice(evidence, byAttempt, begin, copiesIn(before))) counts.copiedTwice++
      else unexplained.push(begin)
    }
  }
  return { counts, unexplained }
}

/**
 * When a call was done in every respect, so that its offset could be committed; undefined where it was not, or is not known:
 * what a handler sent is acknowledged at a time of which no event tells.
 */
function settledAt({ end, routedAt }: Call, sends: boolean): number | undefined {
  if (end?.outcome === 'failed') return routedAt
  return sends ? undefined : end?.at
}

class Lanes {
  /** By tier, in order of time. */
  readonly #happenings: Map<string, Happening[]>
  /** When commits were refused, in order of time, by process and tier. */
  readonly #refusals: Map<string, Happening[]>
  /** With exactly-once: when transactions have failed, in order of time, by process. */
  readonly #failedTransactions: Map<string, Line[]>

  /** Lines by their place in the evidence: each worker's stand in its own order, which the time does not tell within a ms. */
  readonly #places: ReadonlyMap<Line, number>

  constructor(private readonly evidence: Evidence) {
    this.#places = new Map(evidence.lines.map((line, at) => [line, at]))
    const happenings = evidence.lines.filter(isHappening).sort((a, b) => a.at - b.at)
    const moving = happenings.filter(({ what }) => /rebalanced|reopened|crashed/.test(what))
    this.#happenings = groupBy(moving, ({ tier = '' }) => tier)
    const refused = happenings.filter(({ what }) => what === 'commitRefused')
    this.#refusals = groupBy(refused, ({ pid, tier = '' }) => `${pid} ${tier}`)
    // A lane whose transaction has failed commits nothing until its id is taken over. The event names no lane.
    const failed = evidence.delivery === 'exactly-once' ? evidence.lines.filter(isFailedTransaction) : []
    this.#failedTransactions = groupBy(failed, ({ pid }) => `${pid}`)
  }

  /** In flight, or done and perhaps uncommitted, when its worker died; the second call came after that. */
  diedUnder(call: Call, again: Begin, sends: boolean): boolean {
    const death = this.evidence.kills.get(call.begin.worker)
    return death !== undefined && death <= again.at + SLACK && this.#mayBeUncommitted(call, sends, death)
  }

  /**
   * Whether a call that was over may have been without its commit at `at`: it ended just before, or nothing was committed in
   * between, since the broker was away or refused.
   */
  #mayBeUncommitted(call: Call, sends: boolean, at: number): boolean {
    const end = settledAt(call, sends)
    if (end === undefined || end >= at) return true
    const away = (this.evidence.outages ?? []).reduce(
      (sum, { from, to }) => sum + Math.max(0, Math.min(at, to + SLACK) - Math.max(end, from)),
      0,
    )
    if (at - end - away <= (this.evidence.uncommittedMs ?? UNCOMMITTED)) return true
    // What the broker was seen to hold in spite of that is sorted out before (`knownAsDone`).
    const { pid, source } = call.begin
    const refused = [
      ...(this.#refusals.get(`${pid} ${tierOf(source)}`) ?? []),
      ...(this.#failedTransactions.get(`${pid}`) ?? []),
    ]
    return refused.some((one) => one.at >= end && one.at <= at + SLACK)
  }

  /** The broker was seen to hold the copy as done before this process read where its lane begins. */
  knownAsDone(again: Begin): boolean {
    const { commits } = this.evidence
    const opened = this.#lastGain(again.pid, again.source, again.at, this.#places.get(again))
    if (commits === undefined || opened === undefined) return false
    const offset = offsetOf(again.source)
    return (commits.get(laneOf(again.source)) ?? []).some(
      (seen) =>
        seen.at <= opened && (offset < seen.offset || seen.done.some(({ from, to }) => offset >= from && offset < to)),
    )
  }

  takenAway(call: Call, again: Begin, sends: boolean): boolean {
    const { begin } = call
    const lane = laneOf(begin.source)
    const own = this.#happenings.get(tierOf(begin.source)) ?? []
    const inTime = ({ at }: Happening): boolean => at >= begin.at && this.#mayBeUncommitted(call, sends, at)
    const gainedElsewhere = own.some(
      (one) => one.pid !== begin.pid && one.gained?.includes(lane) && one.at <= again.at && inTime(one),
    )
    // The process that had it lost it; the same process may have it again only then. A member that was thrown out while it could
    // not be heard learns of that later: what counts is when another began the lane anew.
    const lost = own.some(
      (one) =>
        one.pid === begin.pid &&
        (inTime(one) || (gainedElsewhere && one.at >= begin.at)) &&
        one.at <= again.at + (again.pid === begin.pid ? 0 : SLACK) &&
        gone(one, lane),
    )
    if (lost || again.pid === begin.pid) return lost
    // Another began it anew, while the first did not know yet. Lines that name no lanes tell only of their tier.
    if (own.some((one) => one.gained === undefined && one.at <= again.at + SLACK && inTime(one))) return true
    if (own.some((one) => one.pid === again.pid && one.gained?.includes(lane) && one.at <= again.at && inTime(one)))
      return true
    // The later call is the one of the process that did not know: the lane had been begun anew since it got it.
    const since = this.#lastGain(again.pid, again.source, again.at)
    const taken = this.#lastGain(begin.pid, begin.source, begin.at)
    if (since === undefined || taken === undefined) return false
    if (since < taken) return true
    // Or the earlier one is: the later call's process had begun the lane anew already, and had it still.
    const has = this.#lastGain(again.pid, again.source, begin.at)
    const gaveUp = (one: Happening): boolean => one.pid === again.pid && one.at <= begin.at && gone(one, lane)
    return has !== undefined && has > taken && !own.some((one) => one.at > has && gaveUp(one))
  }

  /** When a process last began this lane before a time, and before a line of its own where that is known. */
  #lastGain(pid: number, source: Place, before: number, place = Infinity): number | undefined {
    const lane = laneOf(source)
    return (this.#happenings.get(tierOf(source)) ?? [])
      .filter((one) => one.pid === pid && one.at <= before && one.gained?.includes(lane))
      .filter((one) => this.#places.get(one)! < place)
      .at(-1)?.at
  }
}

function isFailedTransaction(line: Line): boolean {
  return line.what === 'note' && line.text.startsWith('{"type":"publishFailed"')
}

/** Whether the lane went away from whoever tells it. */
function gone({ what, lost, removed = 0 }: Happening, lane: string): boolean {
  return what === 'crashed' || (lost?.includes(lane) ?? removed > 0)
}

function copiesIn(calls: readonly Call[]): number {
  return new Set(calls.map(({ begin }) => begin.source)).size
}

/** Each failed call of the attempt before made a copy; so does a lost acknowledgement. */
function copiedTwice(evidence: Evidence, byAttempt: Map<string, Call[]>, begin: Begin, copies: number): boolean {
  const parents = byAttempt.get(nameOf({ ...begin, attempt: begin.attempt - 1 })) ?? []
  if (parents.filter(({ end }) => end?.outcome === 'failed').length > copies) return true
  return parents.some(({ end }) => end !== undefined && duringOutage(evidence, end.at, begin.at))
}

/** Records that stand on the dead letter topic more often than their last attempt failed. */
export function deadTwice(evidence: Evidence, calls: readonly Call[]): string[] {
  const failed = groupBy(
    calls.filter(({ end }) => end?.outcome === 'failed'),
    ({ begin }) => begin.place,
  )
  return [...groupBy(evidence.deadLetters, (place) => place)].flatMap(([place, { length: count }]) => {
    if (count === 1) return []
    const own = failed.get(place) ?? []
    const last = Math.max(...own.map(({ begin }) => begin.attempt))
    const atLast = own.filter(({ begin }) => begin.attempt === last)
    if (atLast.length >= count) return []
    if (atLast.some(({ end }) => duringOutage(evidence, end!.at, end!.at))) return []
    return [`${place} stands ${count} times on the dead letter topic after ${atLast.length} last failures`]
  })
}

function duringOutage({ outages = [] }: Evidence, from: number, to: number): boolean {
  return outages.some((outage) => from <= outage.to + SLACK && to >= outage.from - SLACK)
}
