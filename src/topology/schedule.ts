import { type Duration, formatDuration, isZero, LONGEST_DURATION_MS, parseDuration, shown } from './duration'

/** Delays that grow by a factor; made by `exponential` and checked with the rest of the configuration. */
export interface Backoff {
  readonly type: 'exponential'
  /** The first delay. */
  readonly first: Duration
  /** Each delay is the one before times this; at least 1. Default 2. */
  readonly factor?: number
  /** The longest delay. Default 365 days, which is the limit of any delay. */
  readonly max?: Duration
  /** How many delays; attempts are one more. */
  readonly retries: number
  /** 0 to 1: a delay is made longer, never shorter, by up to this part of it. Default 0. */
  readonly jitter?: number
}

/** The delays between attempts, in order; an empty list sends a failed record straight to the dead letter topic. */
export type Schedule = readonly Duration[] | Backoff

export interface Expanded {
  /** ms, in order of use. */
  readonly delays: readonly number[]
  /** 0 to 1. */
  readonly jitter: number
}

export type ExpandedResult =
  ({ readonly ok: true } & Expanded) | { readonly ok: false; readonly problems: readonly string[] }

/** Attempts without `allowManyAttempts`: each distinct delay is a topic and a consumer group. */
export const MOST_ATTEMPTS = 10
/** Attempts with `allowManyAttempts`. */
export const MOST_ATTEMPTS_ALLOWED = 100

/**
 * A schedule whose delays grow: `exponential({ first: '1s', factor: 2, max: '10m', retries: 6, jitter: 0.2 })` waits
 * 1s, 2s, 4s, 8s, 16s and 32s, each up to a fifth longer. Delays that are equal (at `max`) share one topic. Nothing is
 * checked here: the configuration reports all problems at once.
 */
export function exponential(options: Omit<Backoff, 'type'>): Backoff {
  return Object.freeze({ ...options, type: 'exponential' as const })
}

/** A schedule of `retries` equal delays, which share one topic: `fixed({ delay: '5m', retries: 3 })`. */
export function fixed(options: { delay: Duration; retries: number; jitter?: number }): Backoff {
  const { delay, ...rest } = options
  return exponential({ ...rest, first: delay, factor: 1 })
}

/** Turns a schedule into its delays. Never throws; reports every problem, each with field, value and mend. */
export function expandSchedule(
  schedule: unknown,
  options: { field?: string; allowManyAttempts?: boolean } = {},
): ExpandedResult {
  const field = options.field ?? 'schedule'
  const most = (options.allowManyAttempts === true ? MOST_ATTEMPTS_ALLOWED : MOST_ATTEMPTS) - 1
  if (Array.isArray(schedule)) return expandList(schedule, field, most)
  if ((schedule as Backoff | null | undefined)?.type === 'exponential') {
    return expandBackoff(schedule as Backoff, field, most)
  }
  const mend = "give a list of delays such as ['1m', '10m', '1h'], or exponential({ first: '1s', retries: 5 })"
  return { ok: false, problems: [`${field}: ${shown(schedule)} is not a schedule; ${mend}`] }
}

function expandList(list: readonly unknown[], field: string, most: number): ExpandedResult {
  const problems: string[] = []
  const delays: number[] = []
  if (list.length > most) problems.push(tooMany(field, list.length, most))
  for (const [i, item] of list.slice(0, most).entries()) {
    const result = parseDuration(item, `${field}[${i}]`)
    if (result.ok) delays.push(result.ms)
    else problems.push(isZero(item) ? noWait(item, `${field}[${i}]`) : result.problem)
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, delays, jitter: 0 }
}

/** Whoever writes it wants to try again at once. */
function noWait(item: unknown, field: string): string {
  return (
    `${field}: ${shown(item)} is no wait; to try again at once, leave it out and set immediate: { tries: 1, delay: 0 },` +
    " otherwise give at least '1ms'"
  )
}

function expandBackoff(backoff: Backoff, field: string, most: number): ExpandedResult {
  const problems: string[] = []
  const duration = (value: unknown, name: string): number => {
    const result = parseDuration(value, `${field}.${name}`)
    if (result.ok) return result.ms
    problems.push(result.problem)
    return 1
  }
  const { factor = 2, jitter = 0, retries } = backoff
  const first = duration(backoff.first, 'first')
  const max = backoff.max === undefined ? LONGEST_DURATION_MS : duration(backoff.max, 'max')
  if (problems.length === 0 && max < first) {
    problems.push(`${field}.max: ${shown(backoff.max)} is less than first (${formatDuration(first)}); raise max`)
  }
  if (!(Number.isFinite(factor) && factor >= 1)) {
    problems.push(`${field}.factor: ${shown(factor)} would not let the delays grow; give a number of at least 1`)
  }
  problems.push(...jitterProblems(jitter, `${field}.jitter`))
  if (!(Number.isInteger(retries) && retries >= 0)) {
    problems.push(`${field}.retries: ${shown(retries)} is not a count; give a whole number from 0 to ${most}`)
  } else if (retries > most) {
    problems.push(tooMany(`${field}.retries`, retries, most))
  }
  if (problems.length > 0) return { ok: false, problems }
  const delays = Array.from({ length: retries }, (_, i) => Math.min(max, Math.round(first * factor ** i)))
  return { ok: true, delays, jitter }
}

/** Problems of a jitter: a number from 0 to 1. */
export function jitterProblems(jitter: unknown, field: string): string[] {
  if (typeof jitter === 'number' && jitter >= 0 && jitter <= 1) return []
  return [`${field}: ${shown(jitter)} is not a share; give a number from 0 to 1, such as 0.2`]
}

function tooMany(field: string, count: number, most: number): string {
  const mend = most < MOST_ATTEMPTS_ALLOWED - 1 ? 'use fewer, or set allowManyAttempts' : 'use fewer'
  return `${field}: ${count} retries are more than ${most}, and each distinct delay is a topic and a group; ${mend}`
}
