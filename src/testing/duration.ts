import { RetrylineError } from '../errors'

/** A number of milliseconds, or text such as `'90s'`, `'1m'`, `'2h'`, `'30d'`, `'1h30m'`. */
export type Duration = number | string

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const WHOLE = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/
const PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g

/** A duration in whole ms, rounded up (a wait may be longer than asked, never shorter). */
export function toMs(duration: Duration): number {
  if (typeof duration === 'number' && duration >= 0) return Math.ceil(duration)
  if (typeof duration === 'string' && WHOLE.test(duration)) {
    let sum = 0
    for (const [, amount, unit] of duration.matchAll(PART)) sum += Number(amount) * (UNITS[unit ?? ''] ?? NaN)
    return Math.ceil(sum)
  }
  throw new RetrylineError(
    'RETRYLINE_TESTING',
    `${typeof duration === 'string' ? `'${duration}'` : String(duration)} is not a duration: ` +
      `give a number of ms (0 or more), or text such as '90s', '1m', '2h', '30d'`,
  )
}
