/**
 * P13, the half about configuration: every mistake that the issue names, and its neighbours. One clear error that names
 * the field, the value and the mend; nothing is connected, so nothing is left running.
 */
import { describe, expect, it } from 'vitest'
import { createResilientConsumer, isRetrylineError, type RetrylineError } from '../../src'
import { createFakeKafka } from '../../src/testing'

const nothing = (): void => undefined
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }
const GOOD = { groupId: 'billing', topic: 'orders', schedule: ['1m'], logger, handler: nothing }

function refused(options: Record<string, unknown>): RetrylineError {
  const kafka = createFakeKafka({ topics: { orders: 1 } })
  try {
    createResilientConsumer({ kafka, ...GOOD, ...options })
  } catch (error) {
    expect(kafka.clock.timers()).toBe(0)
    if (isRetrylineError(error, 'RETRYLINE_CONFIG')) return error
    throw error
  }
  throw new Error(`this was taken: ${JSON.stringify(options)}`)
}

const LONG = 'x'.repeat(250)

/** Field, value as the message shows it, and what the mend must speak of. */
const MISTAKES: readonly (readonly [options: Record<string, unknown>, field: RegExp, value: RegExp, mend: RegExp])[] = [
  // Unknown keys.
  [{ shedule: ['1m'] }, /shedule/, /shedule/, /schedule/],
  [{ retries: 3 }, /retries/, /retries/, /there is no such option/],
  // Durations.
  [{ schedule: ['100'] }, /^schedule/, /100/, /ms, s, m, h/],
  [{ schedule: ['-5m'] }, /^schedule/, /-5m/, /./],
  [{ schedule: ['1M'] }, /^schedule/, /1M/, /ms, s, m, h, d/],
  [{ schedule: ['1m', ''] }, /^schedule/, /''|""/, /./],
  [{ schedule: ['5 minutes ago'] }, /^schedule/, /5 minutes ago/, /./],
  [{ schedule: [NaN] }, /^schedule/, /NaN/, /./],
  [{ schedule: '1m' }, /^schedule/, /1m/, /list|\[/],
  [{ schedule: undefined }, /^schedule/, /undefined|missing/, /./],
  [{ handlerTimeout: '100' }, /^handlerTimeout/, /100/, /ms, s, m, h, d/],
  [{ handlerTimeout: '-5m' }, /^handlerTimeout/, /-5m/, /give a duration/],
  [{ handlerTimeout: '1M' }, /^handlerTimeout/, /1M/, /give a duration/],
  [{ handlerTimeout: 0 }, /^handlerTimeout/, /0/, /give a duration/],
  // Too many attempts.
  [{ schedule: Array.from({ length: 10 }, (_, n) => `${n + 1}m`) }, /^schedule/, /1[01]/, /allowManyAttempts/],
  // Topic names.
  [{ topic: 'orders/confirmed' }, /^topic/, /orders\/confirmed/, /./],
  [{ topic: 'órders' }, /^topic/, /órders/, /./],
  [{ topic: '' }, /^topic/, /''|""/, /./],
  [{ topic: '..' }, /^topic/, /\.\./, /./],
  [{ topic: LONG }, /^topic/, /x{20}/, /249/],
  [{ topic: 'x'.repeat(243) }, /^retry topic 1m of/, /252 characters/, /249; choose another topic/],
  [{ topic: [] }, /^topic/, /an empty list/, /give a topic/],
  [{ topic: ['a', 'a'] }, /^topic/, /a/, /once/],
  [{ topic: ['orders', 'orders.dlq'] }, /^dead letter topic/, /orders\.dlq/, /topicNames/],
  // Numbers.
  [{ concurrency: 0 }, /^concurrency/, /0/, /1 to 1000/],
  [{ concurrency: '16' }, /^concurrency/, /16/, /1 to 1000/],
  [{ concurrency: 1.5 }, /^concurrency/, /1\.5/, /whole number/],
  [{ concurrency: Infinity }, /^concurrency/, /Infinity/, /1 to 1000/],
  [{ maxBufferedBytes: '64 cookies' }, /^maxBufferedBytes/, /64 cookies/, /64MiB/],
  // Things that do not go together.
  [{ sessionTimeout: '3s', heartbeatInterval: '3s' }, /^heartbeatInterval/, /3000/, /sessionTimeout/],
  [{ sessionTimeout: '2s' }, /^heartbeatInterval/, /3000/, /below sessionTimeout/],
  // The rest.
  [{ groupId: '' }, /^groupId/, /''|""/, /./],
  [{ groupId: 42 }, /^groupId/, /42/, /text/],
  [{ handler: 'nope' }, /^handler/, /nope/, /function/],
  [{ kafka: {} }, /^kafka/, /an empty object/, /new Kafka/],
  [{ ordering: 'fifo' }, /^ordering/, /fifo/, /'partition'/],
  [{ startFrom: new Date('nonsense') }, /^startFrom/, /Invalid Date|Date/, /valid Date/],
  [{ unknownErrors: 'ignore' }, /^unknownErrors/, /ignore/, /'dead-letter'/],
  [{ hooks: [{ atempt: nothing }] }, /^hooks/, /atempt/, /attempt/],
]

describe('P13 bad input: configuration', () => {
  it.each(MISTAKES)('%o is refused by one line that names field, value and mend', (options, field, value, mend) => {
    const { problems, message } = refused(options)
    expect(problems).toHaveLength(1)
    const [problem] = problems
    expect(problem).toMatch(field)
    expect(problem).toMatch(value)
    expect(problem).toMatch(mend)
    expect(message).toContain(problem)
  })

  it('all problems are told at once', () => {
    const { problems } = refused({ concurrency: 0, groupId: '', handlerTimeout: '100', topic: 'a b' })
    expect(problems.map((problem) => /^\w+/.exec(problem)?.[0]).sort()).toEqual([
      'concurrency',
      'groupId',
      'handlerTimeout',
      'topic',
    ])
  })

  it.each([undefined, null, 'orders', [], 42, () => undefined])('no options at all: %o', (options) => {
    expect(() => createResilientConsumer(options as never)).toThrow(/options: .* give \{ kafka, groupId, topic/)
  })
})
