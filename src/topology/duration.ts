import ms from 'ms'

/** A length of time: a positive whole number of ms, or text such as `500ms`, `30s`, `1m`, `2h`, `7d`. */
export type Duration = number | string

export type DurationResult =
  { readonly ok: true; readonly ms: number } | { readonly ok: false; readonly problem: string }

/** The longest duration that is taken: 365 days. A longer one is a slip of the pen (ms for s) or beyond any retention. */
export const LONGEST_DURATION_MS = 365 * 24 * 60 * 60 * 1000

/** From large to small; each divides the one before. */
const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

// Stricter than `ms`, which takes '100' (ms), '-5m', '1M' (a minute, not a month), '1.5 hrs' and '1y' (365.25 days).
const TEXT = /^[1-9][0-9]{0,14}(ms|s|m|h|d)$/
const MEND = "give a whole number and a unit (ms, s, m, h, d) such as '30s', or a positive whole number of ms"

/** Parses a duration; `field` names it in the problem. Never throws. */
export function parseDuration(value: unknown, field: string): DurationResult {
  const length = typeof value === 'number' ? value : parseText(value)
  if (length === undefined || !Number.isInteger(length) || length <= 0) {
    return { ok: false, problem: `${field}: ${shown(value)} is not a duration${flaw(value)}; ${MEND}` }
  }
  if (length > LONGEST_DURATION_MS) {
    return { ok: false, problem: `${field}: ${shown(value)} is longer than 365 days; give at most '365d'` }
  }
  return { ok: true, ms: length }
}

/** What is wrong with what is not a duration, where that can be said: ` (it has no unit)`; otherwise nothing. */
export function flaw(value: unknown): string {
  if (isZero(value)) return ' (it is nothing)'
  if (typeof value !== 'string') return ''
  if (/^\d+$/.test(value)) return ' (it has no unit)'
  if (/^\s|\s$|\d\s/.test(value)) return ' (it has a space)'
  if (/^\d*[.,]\d+(ms|s|m|h|d)$/.test(value)) return " (a smaller unit makes it whole: '90m' for an hour and a half)"
  return ''
}

/** Zero, in any unit or none. */
export function isZero(value: unknown): boolean {
  return value === 0 || (typeof value === 'string' && /^0+(ms|s|m|h|d)?$/.test(value))
}

function parseText(value: unknown): number | undefined {
  return typeof value === 'string' && TEXT.test(value) ? ms(value as ms.StringValue) : undefined
}

/** A value as it is shown in a problem: short, on one line, whatever it is. */
export function shown(value: unknown): string {
  if (typeof value === 'string') {
    return `'${JSON.stringify(value.slice(0, 60)).slice(1, -1)}${value.length > 60 ? '...' : ''}'`
  }
  if (typeof value === 'number' || typeof value === 'boolean' || value == null) return String(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'object') return Array.isArray(value) ? 'an array' : 'an object'
  return `a ${typeof value}`
}

/** The canonical text: the largest unit that divides exactly (60000 is `1m`, 90000 is `90s`, 1500 is `1500ms`). */
export function formatDuration(length: number): string {
  for (const [unit, size] of UNITS) {
    if (length >= size && length % size === 0) return `${length / size}${unit}`
  }
  return `${length}ms`
}

/** The ms of a canonical text, `undefined` for anything else (`60s` is not canonical: that is `1m`). */
export function parseCanonical(text: string): number | undefined {
  const result = parseDuration(text, '')
  return result.ok && formatDuration(result.ms) === text ? result.ms : undefined
}
