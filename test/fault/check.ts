/**
 * Reconciles what stands on the topics with what the workers wrote down. Pure, so that it can be shown faults: a checker
 * that finds nothing is worth nothing unless it finds them (check.test.ts).
 */
import { deadTwice, explainDuplicates, type Explained } from './duplicates'
import { callsOf, groupBy, isHappening, nameOf, type Call, type Evidence } from './evidence'
import type { Begin, Line, Place } from './ledger'
import { disorder } from './order'
import { longestStall } from './stalls'

export type { Evidence } from './evidence'

export interface Findings {
  readonly produced: number
  readonly handled: number
  readonly deadLettered: number
  /** On a retry topic, not called for yet. */
  readonly waiting: number
  readonly lost: number
  readonly calls: number
  /** Calls beyond the first for the same record and attempt, by what explains them. */
  readonly duplicates: Explained['counts']
  readonly unexplained: number
  readonly early: number
  readonly disorder: number
  readonly backwardsCommits: number
  /** Dead letters whose handler would have succeeded. */
  readonly wronglyDead: number
  /** With exactly-once: copies, and records of handlers, that a `read_committed` reader sees twice. */
  readonly hopsTwice: number
  readonly longestStallMs: number
  readonly latenessMs: { readonly median: number; readonly p99: number }
  readonly problems: readonly string[]
}

/** All that is known of one record, line by line, for a person to read. */
export function storyOf(lines: readonly Line[], place: Place): string {
  const own = lines.filter((line) => (line.what === 'begin' || line.what === 'end') && line.place === place)
  const from = Math.min(...own.map(({ at }) => at)) - 15_000
  const to = Math.max(...own.map(({ at }) => at)) + 15_000
  const around = lines.filter((line) => isHappening(line) && line.at >= from && line.at <= to)
  return [...own, ...around]
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

export function check(evidence: Evidence): Findings {
  const problems: string[] = []
  const calls = callsOf(evidence.lines)
  const handled = new Set(calls.filter(({ end }) => end?.outcome === 'ok').map(({ begin }) => begin.place))
  const dead = new Set(evidence.deadLetters)
  const known = new Set(evidence.produced)
  const waiting = new Set(waitingOf(evidence, calls).filter((place) => !handled.has(place) && !dead.has(place)))

  const lost = [
    ...evidence.produced
      .filter((place) => !handled.has(place) && !dead.has(place) && !waiting.has(place))
      .map((place) => `lost: ${place} was neither handled nor dead-lettered`),
    ...lostElsewhere(evidence, handled),
  ]
  problems.push(...lost)
  for (const place of handled) if (dead.has(place)) problems.push(`${place} was handled and dead-lettered`)
  for (const place of [...handled, ...dead]) if (!known.has(place)) problems.push(`${place} was never produced`)
  const wronglyDead = (evidence.main ?? []).filter(({ place, dies }) => dies === false && dead.has(place))
  for (const { place } of wronglyDead) problems.push(`${place} was dead-lettered, and its handler would have succeeded`)

  const setBack = setBacks(evidence.lines)
  const early = calls.filter(({ begin }) => latenessOf(begin) < 0 && !wasDue(begin, setBack))
  for (const { begin } of early) problems.push(`early by ${-latenessOf(begin)} ms: ${nameOf(begin)}`)

  const { counts, unexplained } = explainDuplicates(evidence, calls)
  for (const begin of unexplained) problems.push(`called again without a reason: ${nameOf(begin)} at ${begin.at}`)
  const disorders = disorder(evidence, calls)
  const twice = hopsTwice(evidence)
  const falls = evidence.falls ?? []
  problems.push(...deadTwice(evidence, calls), ...disorders, ...twice)
  problems.push(...falls.map((fall) => `a commit went backwards: ${fall}`))

  const lateness = calls
    .filter(({ begin }) => begin.dueAt !== undefined)
    .map(({ begin }) => latenessOf(begin))
    .sort((a, b) => a - b)
  const share = (part: number): number =>
    lateness[Math.min(lateness.length - 1, Math.floor(lateness.length * part))] ?? 0
  return {
    produced: evidence.produced.length,
    handled: handled.size,
    deadLettered: dead.size,
    waiting: waiting.size,
    lost: lost.length,
    calls: calls.length,
    duplicates: counts,
    unexplained: unexplained.length,
    early: early.length,
    disorder: disorders.length,
    backwardsCommits: falls.length,
    wronglyDead: wronglyDead.length,
    hopsTwice: twice.length,
    longestStallMs: longestStall(evidence),
    latenessMs: { median: share(0.5), p99: share(0.99) },
    problems,
  }
}

/** A due time is a time of the wall, and the wall's clock is the one that the worker believes in. */
function latenessOf({ at, skew = 0, dueAt = 0 }: Begin): number {
  return at + skew - dueAt
}

/** A record that was found due starts a moment later, and a clock may be set back in between, ms. */
const STARTING = 2_000

function wasDue({ pid, at, dueAt = 0 }: Begin, setBack: ReadonlyMap<number, readonly SetBack[]>): boolean {
  return (setBack.get(pid) ?? []).some((one) => one.at <= at && at - one.at <= STARTING && at + one.from >= dueAt)
}

interface SetBack {
  readonly at: number
  /** How much the clock was ahead before, ms. */
  readonly from: number
}

/** When the wall clock of each process was set back. */
function setBacks(lines: readonly Line[]): Map<number, SetBack[]> {
  const found = new Map<number, SetBack[]>()
  const last = new Map<number, number>()
  for (const { pid, at, skew = 0 } of [...lines].sort((a, b) => a.at - b.at)) {
    const from = last.get(pid) ?? 0
    if (skew < from) found.set(pid, [...(found.get(pid) ?? []), { at, from }])
    last.set(pid, skew)
  }
  return found
}

/** Records with a copy on a retry topic for whose attempt no call has begun. */
function waitingOf({ hops = [] }: Evidence, calls: readonly Call[]): Place[] {
  const begun = new Set(calls.map(({ begin }) => nameOf(begin)))
  return hops.filter((hop) => hop.reason === undefined && !begun.has(nameOf(hop))).map(({ place }) => place)
}

/** What the producer was promised and is nowhere, and what a handler sent and is nowhere. */
function lostElsewhere({ main = [], acknowledged, sent }: Evidence, handled: ReadonlySet<Place>): string[] {
  const ids = new Set(main.map(({ id }) => id))
  const nowhere = [...(acknowledged?.keys() ?? [])].filter((id) => !ids.has(id))
  const there = new Set(sent)
  const unsent =
    sent === undefined ? [] : main.filter(({ place, sends }) => sends && handled.has(place) && !there.has(place))
  return [
    ...nowhere.map((id) => `lost: ${id} was acknowledged and is not on the topic`),
    ...unsent.map(({ place }) => `lost: what the handler of ${place} sent is not on its topic`),
  ]
}

function hopsTwice({ delivery, hops = [], sent = [] }: Evidence): string[] {
  if (delivery !== 'exactly-once') return []
  const copies = groupBy(hops, (hop) => `${nameOf(hop)}${hop.reason === undefined ? '' : ' (dead letter)'}`)
  const again = [...copies].filter(([, { length }]) => length > 1)
  const sends = [...groupBy(sent, (place) => place)].filter(([, { length }]) => length > 1)
  return [
    ...again.map(([name, all]) => `a hop twice: ${name} stands at ${all.map(({ at }) => at).join(' and ')}`),
    ...sends.map(([place, { length }]) => `a hop twice: what the handler of ${place} sent stands ${length} times`),
  ]
}
