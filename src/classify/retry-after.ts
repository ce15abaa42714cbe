import { isArray, isObject, members, read } from './look'
import type { Look } from './look'

/** The longest wait that a server's `Retry-After` is believed, in ms: a day. It is somebody else's input. */
const LONGEST_RETRY_AFTER = 24 * 3_600_000
/** How many headers are looked through for one written in another case. */
const MOST_HEADERS = 200

/** RFC 9110, 10.2.3: a whole number of seconds, or a date. Some servers send a fraction, some an ISO date. */
const SECONDS = /^\d{1,12}(\.\d{1,9})?$/
const DATE = /^((Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? |\d{4}-\d\d-\d\dT)/

const bounded = (ms: number): number | undefined => (ms > 0 ? Math.min(Math.ceil(ms), LONGEST_RETRY_AFTER) : undefined)

function parse(value: unknown, now: () => number): number | undefined {
  if (typeof value === 'number') return bounded(value * 1000)
  if (typeof value !== 'string' || value.length > 100) return undefined
  const text = value.trim()
  if (SECONDS.test(text)) return bounded(Number(text) * 1000)
  return DATE.test(text) ? bounded(Date.parse(text) - now()) : undefined
}

function* entries(headers: object): Generator<readonly [unknown, unknown]> {
  if (headers instanceof Map) yield* headers.entries()
  else for (const name of Object.keys(headers)) yield [name, read(headers, name)]
}

/** The header from fetch's `Headers`, from axios's, from a Map or from a plain object, in any letter case. */
function header(headers: unknown): unknown {
  if (!isObject(headers)) return undefined
  try {
    const get = read(headers, 'get')
    if (typeof get === 'function') {
      const value: unknown = get.call(headers, 'retry-after')
      if (value !== undefined && value !== null) return value
    }
    let left = MOST_HEADERS
    for (const [name, value] of entries(headers)) {
      if (left-- === 0) return undefined
      if (typeof name === 'string' && name.length === 11 && name.toLowerCase() === 'retry-after') return value
    }
  } catch {
    // Headers that cannot be read say nothing.
  }
  return undefined
}

/**
 * How long, in ms, an error of HTTP status 429 or 503 asks to wait: its `Retry-After` header (seconds or a date), else
 * `retryAfterMs` (ms), `retryAfterSeconds` or `retryAfter` (seconds, like the header). At most a day.
 */
export function retryAfter(seen: Look, now: () => number): number | undefined {
  if (seen.status !== 429 && seen.status !== 503) return undefined
  for (const headers of [
    read(seen.get('response'), 'headers'),
    seen.get('headers'),
    read(seen.get('$response'), 'headers'),
  ]) {
    const value = header(headers)
    const ms = parse(isArray(value) ? members(value, 1)[0] : value, now)
    if (ms !== undefined) return ms
  }
  const ms = seen.get('retryAfterMs')
  if (typeof ms === 'number') return bounded(ms)
  return parse(seen.get('retryAfterSeconds'), now) ?? parse(seen.get('retryAfter'), now)
}
