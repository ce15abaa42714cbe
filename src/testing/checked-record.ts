/**
 * A record as a test writes it, checked: what JavaScript lets through, and what the types of a test were told to ignore,
 * is refused with one error that names field, value and mend. Nothing is guessed: a number is no text.
 */
import { RetrylineError } from '../errors'
import type { Header } from '../record'
import { kindOf, show } from './show'

export interface CheckedRecord {
  readonly topic: string | undefined
  readonly partition: number | undefined
  readonly offset: bigint | undefined
  /** ms since the epoch. */
  readonly timestamp: number | undefined
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}

type Bad = (field: string, value: unknown, mend: string) => RetrylineError

const FIELDS = ['value', 'key', 'headers', 'topic', 'partition', 'offset', 'timestamp']

/**
 * `who` begins the message of an error (`kafka.produce()`). With `json`, a value must be given, and an object becomes
 * JSON; without, a value that is left out is a tombstone, as for any producer. Throws RETRYLINE_TESTING.
 */
export function checkRecord(who: string, input: unknown, json: boolean): CheckedRecord {
  const bad: Bad = (field, value, mend) =>
    new RetrylineError('RETRYLINE_TESTING', `${who}: ${field} is ${show(value)}; ${mend}`)
  if (typeof input !== 'object' || input === null || Array.isArray(input) || ArrayBuffer.isView(input)) {
    throw bad('the record', input, `give an object: { key: 'order-17', value: ${json ? '{ total: 1 }' : "'{}'"} }`)
  }
  const record = input as Record<string, unknown>
  const stranger = Object.keys(record).find((name) => !FIELDS.includes(name))
  if (stranger !== undefined) throw bad(stranger, record[stranger], `a record has only ${FIELDS.join(', ')}`)
  return {
    topic: topicOf(record.topic, bad),
    partition: partitionOf(record.partition, bad),
    offset: offsetOf(record.offset, bad),
    timestamp: timestampOf(record.timestamp, bad),
    key: bytes('key', record.key ?? null, 'give text, a Buffer or null', bad),
    value: json ? jsonOf(record.value, bad) : valueOf(record.value, bad),
    headers: headersOf(record.headers, bad),
  }
}

function topicOf(topic: unknown, bad: Bad): string | undefined {
  if (topic === undefined || (typeof topic === 'string' && topic !== '')) return topic
  throw bad('topic', topic, 'give the name of a topic')
}

function partitionOf(partition: unknown, bad: Bad): number | undefined {
  if (partition === undefined || (Number.isInteger(partition) && (partition as number) >= 0)) {
    return partition as number | undefined
  }
  throw bad('partition', partition, 'give a whole number from 0, or leave it out')
}

function offsetOf(offset: unknown, bad: Bad): bigint | undefined {
  if (offset === undefined) return undefined
  const exact = typeof offset === 'bigint' || Number.isSafeInteger(offset)
  if (exact || (typeof offset === 'string' && /^\d{1,19}$/.test(offset))) {
    const value = BigInt(offset as bigint | number | string)
    if (value >= 0n) return value
  }
  throw bad('offset', offset, "give a bigint from 0n (17n), or decimal text ('17')")
}

function timestampOf(timestamp: unknown, bad: Bad): number | undefined {
  if (timestamp === undefined) return undefined
  const isText = typeof timestamp === 'string' && /^\d{1,16}$/.test(timestamp)
  const isDate = typeof timestamp === 'object' && timestamp !== null && kindOf(timestamp) === 'Date'
  const ms = isText || isDate || typeof timestamp === 'number' ? Number(timestamp) : NaN
  if (Number.isSafeInteger(ms) && ms >= 0) return ms
  throw bad('timestamp', timestamp, 'give a Date, or ms since the epoch')
}

function valueOf(value: unknown, bad: Bad): Buffer | null {
  const mend = 'give text, a Buffer or null; record({ value }) makes JSON of an object'
  return bytes('value', value ?? null, mend, bad)
}

/** What cannot be JSON, or would silently lose something as JSON. */
const NO_JSON = ['Map', 'Set', 'WeakMap', 'WeakSet', 'Promise', 'Error', 'RegExp']

function jsonOf(value: unknown, bad: Bad): Buffer | null {
  const mend = 'give an object or a list (they become JSON), text, a Buffer, or null for a tombstone'
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return bytes('value', value, mend, bad)
  const kind = kindOf(value)
  if (NO_JSON.includes(kind)) throw bad('value', value, kind === 'Promise' ? `await it; ${mend}` : mend)
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw bad('value', value, `it cannot become JSON (${String(error).split('\n')[0]}); give what can`)
  }
  if (text === undefined) throw bad('value', value, `its toJSON() gives nothing; ${mend}`)
  return Buffer.from(text)
}

/** Copies: a log must not change when the caller uses its buffer again. */
function bytes(field: string, value: unknown, mend: string, bad: Bad): Buffer | null {
  if (value === null) return null
  if (typeof value === 'string') return Buffer.from(value)
  // By kind: in a test runner's sandbox the class may be another one than Buffer's own.
  if (typeof value === 'object' && kindOf(value) === 'Uint8Array') return Buffer.from(value as Uint8Array)
  throw bad(field, value, mend)
}

function headersOf(headers: unknown, bad: Bad): Header[] {
  if (headers === undefined) return []
  const mend = "give { name: 'value' }, or a list of [name, value] where the order of repeated names matters"
  if (typeof headers !== 'object' || headers === null || ArrayBuffer.isView(headers))
    throw bad('headers', headers, mend)
  const valueMend = 'give text, a Buffer or null, or a list of these; a number as text'
  const header = (name: unknown, value: unknown): Header => {
    if (typeof name !== 'string') throw bad('the name of a header', name, 'give text')
    return [name, bytes(`header ${name}`, value, valueMend, bad)]
  }
  if (!Array.isArray(headers)) {
    return Object.entries(headers).flatMap(([name, value]: [string, unknown]) =>
      (Array.isArray(value) ? (value as unknown[]) : [value]).map((one) => header(name, one)),
    )
  }
  return (headers as unknown[]).map((pair) => {
    if (!Array.isArray(pair) || pair.length !== 2) throw bad('a header', pair, mend)
    return header(pair[0], pair[1])
  })
}
