import type { Duration } from '../topology'
import { hush, isObject, isPromise } from './look'
import type { Look } from './look'
import { hold } from './verdict'
import type { Verdict } from './verdict'

/** What the classifier is told of the record whose handler failed. */
export interface ClassifyContext {
  /** Where the record first stood, also when a retry of it failed. */
  readonly topic: string
  readonly partition: number
  /** Decimal text. */
  readonly offset: string
  readonly key: Buffer | null
  /** The number of the attempt that failed; the first is 1. */
  readonly attempt: number
  /** How many attempts the schedule has in all. */
  readonly maxAttempts: number
  /** When the record first failed, in ms since the epoch; absent at the first failure. */
  readonly firstFailedAt?: number
}

type OneOrMore<T> = T | readonly T[]

/** A status, all of a hundred, or a range with both ends in it. */
export type StatusMatch = number | '4xx' | '5xx' | { readonly from: number; readonly to: number }

/**
 * Which errors a rule is about. All fields that are given must fit one and the same error; that may be the one that was
 * thrown, one of its causes, or one that an AggregateError gathers. A list fits when one of its members does.
 */
export interface Match {
  /** The class: `instanceof`. */
  readonly type?: OneOrMore<abstract new (...args: never[]) => unknown>
  /** `error.name`, or the name of its class. */
  readonly name?: OneOrMore<string | RegExp>
  /** `error.code`. */
  readonly code?: OneOrMore<string | number | RegExp>
  /** The HTTP status: `status`, `statusCode`, `response.status` or `$metadata.httpStatusCode`. */
  readonly status?: OneOrMore<StatusMatch>
  /** A part of the message, or a pattern for it; the first 10,000 characters are looked at. */
  readonly message?: OneOrMore<string | RegExp>
  /** Any other test, on the error that the other fields fit; where it stands alone, on the error that was thrown. */
  readonly when?: (error: unknown, ctx: ClassifyContext) => boolean
}

export interface Rule {
  readonly match: Match
  readonly verdict: 'retry' | 'dead-letter' | Verdict
  /** With `retry`: wait at least so long (ms, or text such as `'10m'`). Without it, a `Retry-After` of HTTP 429 or 503 is heeded. */
  readonly after?: Duration
  /** One short sentence for people; it stands in the dead letter's headers. */
  readonly because?: string
}

/** A class of errors, or a match. */
export type On = Match | (abstract new (...args: never[]) => unknown)

const matchOf = (on: On): Match => (typeof on === 'function' ? { type: on } : on)

/** A rule: retry these errors. `retryOn(LockedError)`, `retryOn({ code: 'P2025' }, { after: '1m' })`. */
export function retryOn(on: On, options?: { readonly after?: Duration; readonly because?: string }): Rule {
  return { match: matchOf(on), verdict: 'retry', ...options }
}

/** A rule: dead-letter these errors at once. `deadLetterOn(UnknownCustomer)`, `deadLetterOn({ status: [401, 403] })`. */
export function deadLetterOn(on: On, options?: { readonly because?: string }): Rule {
  return { match: matchOf(on), verdict: 'dead-letter', ...options }
}

/** A rule: these errors say that a dependency is down. `holdOn({ code: 'ECONNREFUSED' }, 'payments')`. */
export function holdOn(on: On, dependency: string, options?: { readonly because?: string }): Rule {
  return { match: matchOf(on), verdict: hold(dependency, options?.because) }
}

const some = <T>(wanted: OneOrMore<T>, fits: (one: T) => boolean): boolean =>
  Array.isArray(wanted) ? (wanted as readonly T[]).some(fits) : fits(wanted as T)

// `search` starts at the beginning each time: `test` would not, with a pattern that is global or sticky.
const found = (pattern: RegExp, text: string): boolean => text.search(pattern) >= 0

function fitsStatus(status: number, wanted: StatusMatch): boolean {
  if (typeof wanted === 'number') return status === wanted
  if (typeof wanted === 'string') return Math.floor(status / 100) === Number(wanted[0])
  return status >= wanted.from && status <= wanted.to
}

type Field = Exclude<keyof Match, 'when'>

const FITS: { readonly [K in Field]: (seen: Look, wanted: NonNullable<Match[K]>) => boolean } = {
  type: ({ error }, wanted) => isObject(error) && some(wanted, (type) => error instanceof type),
  name: ({ names }, wanted) =>
    some(wanted, (one) => names.some((name) => (typeof one === 'string' ? name === one : found(one, name)))),
  code: ({ code }, wanted) =>
    code !== undefined && some(wanted, (one) => (one instanceof RegExp ? found(one, `${code}`) : code === one)),
  status: ({ status }, wanted) => status !== undefined && some(wanted, (one) => fitsStatus(status, one)),
  message: ({ message }, wanted) =>
    some(wanted, (one) => (typeof one === 'string' ? message.includes(one) : found(one, message))),
}

export const FIELDS = Object.keys(FITS) as readonly Field[]

const fits = <K extends Field>(field: K, match: Match, seen: Look): boolean => {
  const wanted = match[field]
  return wanted === undefined || FITS[field](seen, wanted)
}

/** A promise is nearly always true, and what it comes to is known too late. */
function said(answer: unknown): boolean {
  if (!isPromise(answer)) return answer === true
  hush(answer)
  throw new TypeError('when answered a promise; make it a function that is not async')
}

/** Whether a rule is about what was thrown; `errors` is that and all behind it. May throw what the user's code throws. */
export function applies({ match }: Rule, errors: readonly Look[], thrown: unknown, ctx: ClassifyContext): boolean {
  const given = FIELDS.filter((field) => match[field] !== undefined)
  if (given.length === 0) return said(match.when?.(thrown, ctx))
  return errors.some(
    (seen) =>
      given.every((field) => fits(field, match, seen)) &&
      (match.when === undefined || said(match.when(seen.error, ctx))),
  )
}
