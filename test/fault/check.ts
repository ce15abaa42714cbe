/**
 * Reconciles what stands on the topics with what the workers wrote down. Pure, so that it can be shown faults: a checker
 * that finds nothing is worth nothing unless it finds them (check.test.ts).
 */
import type { Begin, End, Happening, Line, Place } from './ledger'

export interface Evidence {
  readonly lines: readonly Line[]
  /** Where every record of the main topic stands. */
  readonly produced: readonly Place[]
  /** The first place of every record on the dead letter topic, once for each copy there. */
  readonly deadLetters: readonly Place[]
  /** When workers were killed, by name. */
  readonly kills: ReadonlyMap<string, number>
  /** When the broker could not be reached: an acknowledgement may have been lost, and then a copy stands twice. */
  readonly outages?: readonly { readonly from: number; readonly to: number }[]
  /** How long a record that is done may wait for its commit, ms. */
  readonly uncommittedMs?: number
}

export interface Findings {
  readonly produced: number
  readonly handled: number
  readonly deadLettered: number
  readonly lost: number
  readonly calls: number
  /** Calls beyond the first for the same record and attempt, by what explains them. */
  readonly duplicates: { readonly kill: number; readonly revocation: number; readonly copiedTwice: number }
  readonly unexplained: number
  readonly early: number
  readonly latenessMs: { readonly median: number; readonly p99: number }
  readonly problems: readonly string[]
}

/** Clocks are one, but two processes write down the same rebalance a moment apart, ms. */
const SLACK = 1_000
const UNCOMMITTED = 2_000

/** All that is known of one record, line by line, for a person to read. */
function storyOf(lines: readonly Line[], place: Place): string {
  const own = lines.filter(
    (line) => ((line.what === 'begin' || line.what === 'end') && line.place === place) || isHappening(line),
  )
  return own
    .sort((a, b) => a.at - b.at)
    .map((line) => JSON.stringify(line))
    .join('\n')
}

/** One line for machines, and the story of the first record that a problem names. */
export function report(test: string, findings: Findings, lines: readonly Line[], more: object = {}): void {
  const { problems, ...counts } = findings
  process.stdout.write(`${JSON.stringify({ test, ...counts, ...more })}\n`)
  const place = /\S+\/\d+@\d+/.exec(problems[0] ?? '')?.[0]
  if (place !== undefined) process.stdout.write(`${storyOf(lines, place)}\n`)
}

interface Call {
  readonly begin: Begin
  readonly end: End | undefined
}

export function check(evidence: Evidence): Findings {
  const problems: string[] = []
  const calls = callsOf(evidence.lines)
  const handled = new Set(calls.filter(({ end }) => end?.outcome === 'ok').map(({ begin }) => begin.place))
  const dead = new Set(evidence.deadLetters)
  const known = new Set(evidence.produced)

  const lost = evidence.produced.filter((place) => !handled.has(place) && !dead.has(place))
  for (const place of lost) problems.push(`lost: ${place} was neither handled nor dead-lettered`)
  for (const place of handled) if (dead.has(place)) problems.push(`${place} was handled and dead-lettered`)
  for (const place of [...handled, ...dead]) if (!known.has(place)) problems.push(`${place} was never produced`)

  const early = calls.filter(({ begin }) => begin.dueAt !== undefined && begin.at < begin.dueAt)
  for (const { begin } of early) problems.push(`early by ${begin.dueAt! - begin.at} ms: ${nameOf(begin)}`)

  const { counts, unexplained, twice } = explainDuplicates(evidence, calls)
  for (const begin of unexplained) problems.push(`called again without a reason: ${nameOf(begin)} at ${begin.at}`)
  problems.push(...deadTwice(evidence, calls), ...disorder(calls, twice))

  const lateness = calls
    .filter(({ begin }) => begin.dueAt !== undefined)
    .map(({ begin }) => begin.at - begin.dueAt!)
    .sort((a, b) => a - b)
  const share = (part: number): number =>
    lateness[Math.min(lateness.length - 1, Math.floor(lateness.length * part))] ?? 0
  return {
    produced: evidence.produced.length,
    handled: handled.size,
    deadLettered: dead.size,
    lost: lost.length,
    calls: calls.length,
    duplicates: counts,
    unexplained: unexplained.length,
    early: early.length,
    latenessMs: { median: share(0.5), p99: share(0.99) },
    problems,
  }
}

/** A worker calls for one copy at a time, so an end belongs to its last begin. */
function callsOf(lines: readonly Line[]): Call[] {
  const calls: { begin: Begin; end: End | undefined }[] = []
  const open = new Map<string, (typeof calls)[number]>()
  for (const line of lines) {
    if (line.what !== 'begin' && line.what !== 'end') continue
    const key = `${line.pid} ${line.source}`
    if (line.what === 'begin') {
      const call = { begin: line, end: undefined }
      calls.push(call)
      open.set(key, call)
    } else {
      const call = open.get(key)
      if (call) call.end = line
    }
  }
  return calls
}

function explainDuplicates(
  evidence: Evidence,
  calls: readonly Call[],
): { counts: Findings['duplicates']; unexplained: Begin[]; twice: Set<Place> } {
  const counts = { kill: 0, revocation: 0, copiedTwice: 0 }
  const unexplained: Begin[] = []
  const twice = new Set<Place>()
  const happenings = evidence.lines.filter(isHappening)
  const byAttempt = groupBy(calls, ({ begin }) => nameOf(begin))

  for (const group of byAttempt.values()) {
    group.sort((a, b) => a.begin.at - b.begin.at)
    for (const [i, { begin }] of group.entries()) {
      if (i === 0) continue
      twice.add(begin.place)
      const before = group.slice(0, i)
      const sameCopy = before.filter((call) => call.begin.source === begin.source)
      if (sameCopy.some((call) => diedUnder(evidence, call))) counts.kill++
      else if (sameCopy.some((call) => takenAway(evidence, happenings, call, begin))) counts.revocation++
      else if (sameCopy.length === 0 && copiedTwice(evidence, byAttempt, begin, copiesIn(before))) counts.copiedTwice++
      else unexplained.push(begin)
    }
  }
  return { counts, unexplained, twice }
}

/** In flight, or done and perhaps uncommitted, when its worker was killed. */
function diedUnder(evidence: Evidence, { begin, end }: Call): boolean {
  const death = evidence.kills.get(begin.worker)
  return death !== undefined && (end === undefined || end.at >= death - uncommitted(evidence))
}

/** In flight, or done and perhaps uncommitted, when its group rebalanced (or its consumer crashed) before the call. */
function takenAway(evidence: Evidence, happenings: readonly Happening[], { begin, end }: Call, again: Begin): boolean {
  const tier = tierOf(begin.source)
  return happenings.some(
    ({ what, tier: where, pid, at, removed = 0 }) =>
      (what === 'rebalanced' || what === 'crashed') &&
      where === tier &&
      at >= begin.at &&
      at <= again.at + SLACK &&
      (end === undefined || end.at >= at - uncommitted(evidence)) &&
      // The same process may have it again only where it had lost it in between.
      (again.pid !== begin.pid || (pid === begin.pid && (removed > 0 || what === 'crashed'))),
  )
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

function deadTwice(evidence: Evidence, calls: readonly Call[]): string[] {
  const copies = new Map<Place, number>()
  for (const place of evidence.deadLetters) copies.set(place, (copies.get(place) ?? 0) + 1)
  return [...copies].flatMap(([place, count]) => {
    if (count === 1) return []
    const failed = calls.filter(({ begin, end }) => begin.place === place && end?.outcome === 'failed')
    const last = Math.max(...failed.map(({ begin }) => begin.attempt))
    const atLast = failed.filter(({ begin }) => begin.attempt === last)
    if (atLast.length >= count) return []
    if (atLast.some(({ end }) => duringOutage(evidence, end!.at, end!.at))) return []
    return [`${place} stands ${count} times on the dead letter topic after ${atLast.length} last failures`]
  })
}

function duringOutage({ outages = [] }: Evidence, from: number, to: number): boolean {
  return outages.some((outage) => from <= outage.to + SLACK && to >= outage.from - SLACK)
}

/** First attempts of a partition: one at a time, in order; those that were called twice apart. */
function disorder(calls: readonly Call[], twice: ReadonlySet<Place>): string[] {
  const firsts = calls.filter(({ begin }) => begin.attempt === 1 && !twice.has(begin.place))
  const byPartition = groupBy(firsts, ({ begin }) => partitionOf(begin.place))
  return [...byPartition].flatMap(([partition, list]) => {
    list.sort((a, b) => Number(offsetOf(a.begin.place) - offsetOf(b.begin.place)))
    return list.flatMap((call, i) => {
      const before = list[i - 1]
      if (before?.end === undefined || call.begin.at >= before.end.at) return []
      return [`out of order on ${partition}: ${call.begin.place} began before ${before.begin.place} had ended`]
    })
  })
}

function isHappening(line: Line): line is Happening {
  return line.what !== 'begin' && line.what !== 'end' && line.what !== 'note'
}

function uncommitted({ uncommittedMs = UNCOMMITTED }: Evidence): number {
  return uncommittedMs
}

function nameOf({ place, attempt }: { place: Place; attempt: number }): string {
  return `${place} attempt ${attempt}`
}

function tierOf(source: Place): string {
  return /\.retry\.([^./]+)\/\d+@\d+$/.exec(source)?.[1] ?? 'main'
}

function partitionOf(place: Place): string {
  return place.slice(0, place.lastIndexOf('@'))
}

function offsetOf(place: Place): bigint {
  return BigInt(place.slice(place.lastIndexOf('@') + 1))
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return groups
}
