/**
 * Assertions about what became of records. Each throws node's own AssertionError, so that every test runner knows it for
 * a failed assertion, and says what was expected and what is there instead. They look, and wait for nothing: move the
 * clock first (`await runToEnd(kafka)`, `await kafka.clock.advance('1m')`).
 */
import { AssertionError } from 'node:assert'
import type { FakeKafka } from '../create-fake-kafka'
import { insideOf, type Inside } from '../inside'
import { deadLettersOf, retriesOf, type DeadLetter, type Retry } from './copies'
import {
  checkFilter,
  DEAD_LETTER_FIELDS,
  misfits,
  RETRY_FIELDS,
  showCopy,
  showFilter,
  type DeadLetterFilter,
  type RetryFilter,
} from './filter'

/** The most lines of what is there. */
const MOST = 20

function fail(message: string, by: (...args: never[]) => unknown): never {
  // `fail` is the operator for which runners print the message as it is.
  throw new AssertionError({ message, operator: 'fail', stackStartFn: by })
}

const lines = (list: readonly string[]): string =>
  [...list.slice(0, MOST), ...(list.length > MOST ? [`… and ${list.length - MOST} more`] : [])]
    .map((line) => `\n  ${line}`)
    .join('')

/**
 * There is a dead letter such as this (or as many as `times` says): by topic, key, value, reason, number of attempts,
 * text of the error. Returns those that fit, decoded. Throws an AssertionError that lists the dead letters there are.
 */
export function expectDeadLettered(kafka: FakeKafka, wanted: DeadLetterFilter = {}): DeadLetter[] {
  const inside = insideOf(kafka, 'expectDeadLettered()')
  checkFilter('expectDeadLettered()', wanted, DEAD_LETTER_FIELDS)
  const all = deadLettersOf(kafka, inside)
  const found = all.filter((letter) => misfits(letter, wanted).length === 0)
  if (isEnough(found.length, wanted.times)) return found
  const waiting = stillWaiting(kafka, inside)
  fail(
    `expected ${numbered(wanted.times, 'dead letter')}${showFilter(wanted)}, found ${found.length || 'none'}. ` +
      `${listOf('dead letters', all, wanted)}${
        waiting.length === 0 ? '' : `\nWaiting for a retry (move the clock):${lines(waiting.map(showCopy))}`
      }`,
    expectDeadLettered,
  )
}

/** There is no dead letter (such as this). Throws an AssertionError that lists those there are. */
export function expectNothingDeadLettered(kafka: FakeKafka, unwanted: Omit<DeadLetterFilter, 'times'> = {}): void {
  const inside = insideOf(kafka, 'expectNothingDeadLettered()')
  checkFilter(
    'expectNothingDeadLettered()',
    unwanted,
    DEAD_LETTER_FIELDS.filter((field) => field !== 'times'),
  )
  const found = deadLettersOf(kafka, inside).filter((letter) => misfits(letter, unwanted).length === 0)
  if (found.length === 0) return
  fail(
    `expected no dead letter${showFilter(unwanted)}, found ${found.length}:${lines(found.map(showCopy))}`,
    expectNothingDeadLettered,
  )
}

/**
 * A record was given to a retry topic: by topic, key, value, delay of the tier, number of the attempt, text of the error.
 * Those that were handled meanwhile count too. Returns those that fit, decoded. Throws an AssertionError that lists the
 * retries there are.
 */
export function expectRetried(kafka: FakeKafka, wanted: RetryFilter = {}): Retry[] {
  const inside = insideOf(kafka, 'expectRetried()')
  checkFilter('expectRetried()', wanted, RETRY_FIELDS)
  const all = retriesOf(kafka, inside)
  const found = all.filter((retry) => misfits(retry, wanted).length === 0)
  if (isEnough(found.length, wanted.times)) return found
  fail(
    `expected ${numbered(wanted.times, 'retry', 'retries')}${showFilter(wanted)}, found ${found.length || 'none'}. ` +
      listOf('retries', all, wanted),
    expectRetried,
  )
}

const isEnough = (found: number, times: number | undefined): boolean =>
  times === undefined ? found > 0 : found === times

const numbered = (times: number | undefined, one: string, many = `${one}s`): string =>
  times === undefined ? `a ${one}` : `${times} ${times === 1 ? one : many}`

/** All that are there, the nearest first, each with what does not fit. */
function listOf(what: string, all: readonly (DeadLetter | Retry)[], wanted: DeadLetterFilter & RetryFilter): string {
  if (all.length === 0) return `There are no ${what} at all.`
  const judged = all
    .map((copy) => ({ copy, wrong: misfits(copy, wanted) }))
    .sort((a, b) => a.wrong.length - b.wrong.length)
  return `The ${what} are:${lines(
    judged.map(({ copy, wrong }) => `${showCopy(copy)}${wrong.length === 0 ? '' : `  (another ${wrong.join(', ')})`}`),
  )}`
}

/** Retries that no group has got past. */
function stillWaiting(kafka: FakeKafka, { broker }: Inside): Retry[] {
  return retriesOf(kafka, { broker } as Inside).filter(({ retryTopic, partition, offset }) =>
    broker.coordinator
      .names()
      .every((group) => (broker.coordinator.offsetsOf(group).get(retryTopic)?.get(partition)?.offset ?? -1n) <= offset),
  )
}
