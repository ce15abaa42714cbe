/**
 * Moves the clock until all is handled.
 *
 * quiet -> something is not handled, or a handler waits -> the next timer -> quiet ... -> nothing is left: resolved
 *                                                       -> no timer, or none before the limit, or so many timers that
 *                                                          changed nothing: rejected, with what is stuck
 */
import { RetrylineError } from '../../errors'
import type { FakeKafka } from '../create-fake-kafka'
import { toMs, type Duration } from '../duration'
import { insideOf, type Inside } from '../inside'
import { show } from '../show'
import { deadLettersOf, retriesOf, type DeadLetter, type Retry } from './copies'
import { countBetween, liveGroups, placeOf, standingsOf, type Standing } from './progress'

export interface RunToEndOptions {
  /** How much virtual time may pass. `'30d'` by default. */
  limit?: Duration
}

export interface RunReport {
  /** How much virtual time has passed, ms. */
  readonly elapsedMs: number
  /** Records that groups have got past, retries included: one for each attempt. */
  readonly handled: number
  /** The same by group and topic, where there were any. */
  readonly groups: readonly { readonly groupId: string; readonly topic: string; readonly handled: number }[]
  /** What came to retry topics. */
  readonly retried: readonly Retry[]
  /** What came to dead letter topics. */
  readonly deadLettered: readonly DeadLetter[]
}

/** So many timers in a row without any change are a circle, such as a consumer that crashes at every start. */
const CIRCLES = 2_000
/** The most lines of what is stuck. */
const MOST = 20

/**
 * Moves the clock until every running consumer of this fake broker has handled all there is, retries and dead letters
 * included, and tells what happened. A consumer of retryline has handled what it has committed, a plain kafkajs consumer
 * what lies below its position. Never hangs: rejects with RETRYLINE_TESTING, naming topic, partition and offset of what
 * is stuck; and where no consumer runs.
 */
export async function runToEnd(kafka: FakeKafka, options: RunToEndOptions = {}): Promise<RunReport> {
  const inside = insideOf(kafka, 'runToEnd()')
  const limit = checkedLimit(options)
  const { clock } = inside
  const watched = new Set<string>()
  const startedAt = clock.monotonic()
  const before = new Map<string, Standing>()
  const copiesBefore = new Set(copiesOf(kafka, inside).map(copyKey))
  let unchanged = 0
  let last = ''

  /** Of every group that has a member now or had one while we looked. */
  const look = (): Standing[] => {
    for (const groupId of liveGroups(inside)) watched.add(groupId)
    const all = [...watched].flatMap((groupId) => standingsOf(inside, groupId))
    for (const standing of all) {
      const key = keyOf(standing)
      if (standing.at !== undefined && !before.has(key)) before.set(key, standing)
    }
    return all
  }
  const isOver = (): boolean => {
    const all = look()
    const state = stateOf(all, inside)
    unchanged = state === last ? unchanged + 1 : 0
    last = state
    const calls = clock.parked().length
    return unchanged >= CIRCLES || (calls === 0 && all.every(({ next }) => next === undefined))
  }

  look()
  let how: Awaited<ReturnType<typeof clock.runUntil>>
  try {
    how = await clock.runUntil(isOver, limit)
  } catch (error) {
    throw new RetrylineError('RETRYLINE_TESTING', `runToEnd(): ${(error as Error).message}`, { cause: error })
  }
  const passed = clock.monotonic() - startedAt
  if (watched.size === 0) throw refused('no consumer runs on this broker: start it before')
  const left = look().filter(({ next }) => next !== undefined)
  if (how !== 'enough') {
    const reason =
      how === 'limit' ? `${passed} ms have passed and the next timer is beyond the limit` : 'no timer is left'
    throw stuck(reason, left, inside)
  }
  if (unchanged >= CIRCLES) throw stuck(`${CIRCLES} timers have fired and changed nothing`, left, inside)

  const isNew = (copy: Retry | DeadLetter): boolean => !copiesBefore.has(copyKey(copy))
  return {
    elapsedMs: passed,
    ...countsOf(look(), before, inside),
    retried: retriesOf(kafka, inside).filter(isNew),
    deadLettered: deadLettersOf(kafka, inside).filter(isNew),
  }
}

const refused = (problem: string): RetrylineError => new RetrylineError('RETRYLINE_TESTING', `runToEnd(): ${problem}`)

function checkedLimit(options: unknown): number {
  if (typeof options !== 'object' || options === null)
    throw refused(`${show(options)} is no options; give { limit: '1d' }`)
  const { limit = '30d', ...others } = options as Record<string, unknown>
  for (const name of Object.keys(others)) throw refused(`there is no option '${name}'; there is only limit`)
  return toMs(limit as Duration)
}

const keyOf = ({ groupId, topic, partition }: Standing): string => JSON.stringify([groupId, topic, partition])

/** With slow polls an idle consumer's timers change nothing, and go on as long as it runs. */
function stateOf(all: readonly Standing[], { clock, broker, slowPolls }: Inside): string {
  if (slowPolls) return String(clock.monotonic())
  const ends = all.map(({ topic, partition }) => broker.topics.partition(topic, partition)?.end)
  return `${all.map(({ at }) => at).join()} ${ends.join()} ${clock.parked().join()}`
}

function stuck(reason: string, left: readonly Standing[], { clock }: Inside): RetrylineError {
  const lines = left.map(
    (standing) => `${placeOf(standing)} of ${standing.groupId}${standing.why ? `: ${standing.why}` : ''}`,
  )
  const calls = clock.parked().map((label) => `${label}: the handler waits`)
  const all = [...lines, ...calls]
  const shown = [...all.slice(0, MOST), ...(all.length > MOST ? [`… and ${all.length - MOST} more`] : [])]
  return refused(
    `the end does not come: ${reason}, and not everything is handled:${shown.map((line) => `\n  ${line}`).join('')}\n` +
      'Is a consumer paused or stopped, is a request held, or does a handler wait for something that only the test can do?',
  )
}

function countsOf(all: readonly Standing[], before: ReadonlyMap<string, Standing>, inside: Inside) {
  const counts = new Map<string, { groupId: string; topic: string; handled: number }>()
  for (const standing of all) {
    const { groupId, topic, at } = standing
    const from = before.get(keyOf(standing))?.at
    const handled = at === undefined || from === undefined ? 0 : countBetween(inside, standing, from, at)
    const key = JSON.stringify([groupId, topic])
    const count = counts.get(key) ?? { groupId, topic, handled: 0 }
    counts.set(key, { ...count, handled: count.handled + handled })
  }
  const groups = [...counts.values()].filter(({ handled }) => handled > 0)
  return { handled: groups.reduce((sum, { handled }) => sum + handled, 0), groups }
}

const copiesOf = (kafka: FakeKafka, inside: Inside): (Retry | DeadLetter)[] => [
  ...retriesOf(kafka, inside),
  ...deadLettersOf(kafka, inside),
]

const copyKey = (copy: Retry | DeadLetter): string =>
  `${'retryTopic' in copy ? copy.retryTopic : copy.deadLetterTopic}/${copy.partition}@${copy.offset}`
