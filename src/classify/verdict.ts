import { truncateUtf8 } from '../record/text'
import { parseDuration, type Duration } from '../topology'

/** Why a record goes to the dead letter topic at once; the classifier's part of `x-failure-reason`. */
export type DeadLetterReason = 'non-retryable' | 'unclassified' | 'undecodable' | 'timeout'

export interface RetryVerdict {
  readonly kind: 'retry'
  /** One short sentence for people; it stands in the record's history. */
  readonly because: string
  /** Wait at least so long, in ms; picks a longer tier of the schedule where there is one. */
  readonly after?: number
  /** False where no rule knows the error and `unknownErrors: 'retry'` decided. */
  readonly known: boolean
  /** The id of the built-in rule that decided, `user` or `unknown`: few different values, fit for a metric's label. */
  readonly rule?: string
}

export interface DeadLetterVerdict {
  readonly kind: 'dead-letter'
  /** One short sentence for people; it stands in the dead letter's headers. */
  readonly because: string
  readonly reason: DeadLetterReason
  /** The id of the built-in rule that decided, `user` or `unknown`: few different values, fit for a metric's label. */
  readonly rule?: string
}

/** A dependency is down: the record waits for it where it is, and is never dead-lettered for it. */
export interface HoldVerdict {
  readonly kind: 'hold'
  /** Records that name the same one wait together. */
  readonly dependency: string
  /** One short sentence for people. */
  readonly because: string
  /** The id of the built-in rule that decided, or `user`. */
  readonly rule?: string
}

/** What to do with a record whose handler failed, and because of what. */
export type Verdict = RetryVerdict | DeadLetterVerdict | HoldVerdict

/** The longest `because`, in bytes: the last ten stand together in one header. */
const LONGEST_BECAUSE = 200
/** The longest name of a dependency, in bytes: it is a label of metrics. */
const LONGEST_DEPENDENCY = 100
/** The longest `after`, in ms: a year. What no tier is long enough for goes to the longest tier anyway. */
const LONGEST_AFTER = 365 * 24 * 3_600_000

/** Ms that can be worked with, from a number or a duration as text; undefined for NaN, the negative and any other text. At most a year. */
export function saneAfter(after: unknown): number | undefined {
  const ms = typeof after === 'string' ? fromText(after) : after
  return typeof ms === 'number' && ms >= 0 ? Math.min(Math.ceil(ms), LONGEST_AFTER) : undefined
}

function fromText(text: string): number | undefined {
  const parsed = parseDuration(text, '')
  return parsed.ok ? parsed.ms : undefined
}

/** A verdict: try the record again, by the schedule; with `after` (ms, or text such as `'10m'`), at least so long from now. */
export function retry(
  because = 'the classifier asks for a retry',
  options?: { after?: Duration | undefined },
): Verdict {
  // What is no duration is left to whoever checks the rule, or asks for the verdict: there it can be told.
  const after = saneAfter(options?.after) ?? (options?.after as number | undefined)
  const verdict = { kind: 'retry', because: truncateUtf8(because, LONGEST_BECAUSE), known: true, rule: 'user' } as const
  return after === undefined ? verdict : { ...verdict, after }
}

/** A verdict: send the record to the dead letter topic now, whatever attempts are left. */
export function deadLetter(
  because = 'the classifier asks for the dead letter topic',
  options?: { reason?: DeadLetterReason | undefined },
): Verdict {
  const reason = options?.reason ?? 'non-retryable'
  return { kind: 'dead-letter', because: truncateUtf8(because, LONGEST_BECAUSE), reason, rule: 'user' }
}

/** A verdict: `dependency` is down, so hold what needs it, see the option `outage`. */
export function hold(dependency: string, because = `${dependency} is down`): Verdict {
  return {
    kind: 'hold',
    dependency: truncateUtf8(dependency, LONGEST_DEPENDENCY),
    because: truncateUtf8(because, LONGEST_BECAUSE),
    rule: 'user',
  }
}
