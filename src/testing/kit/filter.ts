/** What a test asks of a copy, and how the answer reads. */
import { FAILURE_REASONS } from '../../envelope'
import { RetrylineError } from '../../errors'
import { show, showBytes } from '../show'
import type { DeadLetter, Retry } from './copies'
import { isBytes, showWanted } from './readable'

interface CopyFilter {
  /** The main topic, or the topic that the copy stands on. */
  topic?: string
  /** The whole key. */
  key?: string | Uint8Array | null
  /** The whole value: an object or a list is compared with what the JSON says, text and bytes as they are. */
  value?: object | string | Uint8Array | null
  /** The group whose handler failed. */
  groupId?: string
  /** A part of `Class: message` of the last error, or a pattern for it. */
  error?: string | RegExp
  /** A part of the classifier's reason, or a pattern for it. */
  because?: string | RegExp
  /** How many there must be. At least one, where it is left out. */
  times?: number
}

export interface DeadLetterFilter extends CopyFilter {
  /** Why it was given up: `exhausted`, `non-retryable`, `undecodable`, `timeout` … */
  reason?: string
  /** How many attempts were made. */
  attempts?: number
}

export interface RetryFilter extends CopyFilter {
  /** The canonical delay of its tier: `1m`, never `60s`. */
  delay?: string
  /** The attempt that is made of it: 2 for the first retry. */
  attempt?: number
}

type Wanted = DeadLetterFilter & RetryFilter
type Field = keyof Wanted
type AnyCopy = Partial<DeadLetter & Retry> & (DeadLetter | Retry)

const SHARED: readonly Field[] = ['topic', 'key', 'value', 'groupId', 'error', 'because', 'times']
export const DEAD_LETTER_FIELDS: readonly Field[] = [...SHARED, 'reason', 'attempts']
export const RETRY_FIELDS: readonly Field[] = [...SHARED, 'delay', 'attempt']

const isText = (value: unknown): boolean => typeof value === 'string'
const isCount = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 1
const isPattern = (value: unknown): boolean => isText(value) || value instanceof RegExp || isForeignPattern(value)
// A test runner's sandbox has a class of its own.
const isForeignPattern = (value: unknown): boolean => Object.prototype.toString.call(value) === '[object RegExp]'
const isContent = (value: unknown): boolean => isText(value) || typeof value === 'object'

const CHECKS: Readonly<Record<Field, readonly [fits: (value: unknown) => boolean, mend: string]>> = {
  topic: [isText, 'give the name of a topic'],
  key: [(value) => isText(value) || value === null || ArrayBuffer.isView(value), 'give text, a Buffer or null'],
  value: [isContent, 'give an object, a list, text, a Buffer or null'],
  groupId: [isText, 'give the name of a group'],
  error: [isPattern, 'give a part of the text, or a pattern'],
  because: [isPattern, 'give a part of the text, or a pattern'],
  times: [isCount, 'give a whole number from 1; for none there is expectNothingDeadLettered()'],
  reason: [
    (value) => (FAILURE_REASONS as readonly unknown[]).includes(value),
    `give one of ${FAILURE_REASONS.join(', ')}`,
  ],
  attempts: [isCount, 'give a whole number from 1'],
  delay: [isText, "give a tier's delay, such as '1m'"],
  attempt: [isCount, 'give a whole number from 1'],
}

/** A typo in a test must not make it pass: throws RETRYLINE_TESTING, naming field, value and mend. */
export function checkFilter(who: string, filter: unknown, fields: readonly Field[]): void {
  const bad = (field: string, value: unknown, mend: string): RetrylineError =>
    new RetrylineError('RETRYLINE_TESTING', `${who}: ${field} is ${show(value)}; ${mend}`)
  if (typeof filter !== 'object' || filter === null || Array.isArray(filter)) {
    throw bad('what to look for', filter, "give an object: { topic: 'orders', key: 'order-17' }")
  }
  for (const [name, value] of Object.entries(filter)) {
    if (!(fields as string[]).includes(name)) throw bad(name, value, `there are only ${fields.join(', ')}`)
    const [fits, mend] = CHECKS[name as Field]
    if (value !== undefined && !fits(value)) throw bad(name, value, mend)
  }
}

/** The fields in which a copy is not what is wanted; none where it fits. */
export function misfits(copy: AnyCopy, wanted: Wanted): Field[] {
  return (Object.keys(wanted) as Field[]).filter((field) => wanted[field] !== undefined && !fits(copy, wanted, field))
}

function fits(copy: AnyCopy, wanted: Wanted, field: Field): boolean {
  switch (field) {
    case 'times':
      return true
    case 'topic':
      return [copy.topic, copy.deadLetterTopic, copy.retryTopic].includes(wanted.topic)
    case 'key':
    case 'value':
      return isBytes(copy.bytes[field], wanted[field])
    case 'error':
      return hasText(`${copy.errorClass}: ${copy.error}`, wanted.error)
    case 'because':
      return hasText(copy.because, wanted.because)
    default:
      return copy[field] === wanted[field]
  }
}

function hasText(text: string, wanted: string | RegExp | undefined): boolean {
  // A pattern with `g` remembers where it was.
  return typeof wanted === 'string' ? text.includes(wanted) : wanted !== undefined && text.search(wanted) >= 0
}

/** `of orders with key 'order-17', reason exhausted`; empty where nothing is asked. */
export function showFilter({ topic, times: _, ...rest }: Wanted): string {
  const parts = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name === 'groupId' ? 'group' : name} ${showWanted(value)}`)
  return `${topic === undefined ? '' : ` of ${topic}`}${parts.length === 0 ? '' : ` with ${parts.join(', ')}`}`
}

/** One line of a list of what is there. */
export function showCopy(copy: AnyCopy): string {
  const { bytes, partition, offset, errorClass, error } = copy
  const what =
    copy.deadLetterTopic === undefined
      ? `attempt ${copy.attempt ?? '?'}, due ${isoOf(copy.dueAt)}`
      : `${copy.reason ?? '?'} after ${copy.attempts === 1 ? '1 attempt' : `${copy.attempts ?? '?'} attempts`}`
  const at = `${copy.deadLetterTopic ?? copy.retryTopic ?? ''}/${partition}@${offset}`
  return `${at}  key ${showBytes(bytes.key)}  value ${showBytes(bytes.value)}  ${what}  ${errorClass}: ${error.split('\n')[0]}`
}

const isoOf = (date: Date | undefined): string =>
  date === undefined || Number.isNaN(date.getTime()) ? '?' : date.toISOString()
