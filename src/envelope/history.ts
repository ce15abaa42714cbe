import { truncateUtf8 } from '../record'
import { isoTime, parseIsoTime } from './formats'
import { LIMIT } from './names'

/** One failure of a record, as `x-history` tells it. */
export interface PastFailure {
  readonly attempt: number
  /** ms since the epoch. */
  readonly at: number
  /** The error's name. */
  readonly class: string
  /** The classifier's reason. */
  readonly because: string
  /** How long after its due time the attempt started, ms; on retries only. */
  readonly late?: number | undefined
}

const MOST = 10
// Even where every byte needs six in JSON, one failure fits into the limit of the header.
const CLASS_BYTES = 100
const BECAUSE_BYTES = 200

/**
 * The newest failures as compact JSON, oldest first:
 * `[{"attempt":1,"at":"2024-05-01T12:00:00.000Z","class":"Error","because":"HTTP 503","late":4}]`.
 * At most 10, and at most 4 KB: the oldest go first.
 */
export function writeHistory(failures: readonly PastFailure[]): string {
  let text = ''
  let bytes = 2
  for (let i = failures.length - 1; i >= Math.max(0, failures.length - MOST); i--) {
    const entry = JSON.stringify(compact(failures[i] as PastFailure))
    bytes += Buffer.byteLength(entry) + 1
    if (bytes > LIMIT.history) break
    text = text === '' ? entry : `${entry},${text}`
  }
  return `[${text}]`
}

function compact(failure: PastFailure): object {
  return {
    attempt: failure.attempt,
    at: isoTime(failure.at),
    class: truncateUtf8(failure.class, CLASS_BYTES),
    because: truncateUtf8(failure.because, BECAUSE_BYTES),
    ...(failure.late === undefined ? {} : { late: Math.round(failure.late) }),
  }
}

/** `undefined` if the text is not a history; single entries that are not failures are left out. */
export function readHistory(text: string): PastFailure[] | undefined {
  const list = parseArray(text)
  return list?.flatMap((entry) => readFailure(entry) ?? []).slice(-MOST)
}

function readFailure(entry: unknown): PastFailure | undefined {
  if (typeof entry !== 'object' || entry === null) return undefined
  const { attempt, at, class: name, because, late } = entry as Record<string, unknown>
  const time = typeof at === 'string' ? parseIsoTime(at) : undefined
  if (!isCount(attempt) || time === undefined || typeof name !== 'string' || typeof because !== 'string')
    return undefined
  return { attempt, at: time, class: name, because, ...(isCount(late) ? { late } : {}) }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** JSON that must be an array; never throws. */
export function parseArray(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
