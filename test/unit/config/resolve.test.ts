import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { retry } from '../../../src/classify'
import { resolveOptions } from '../../../src/config'
import { FIELDS } from '../../../src/config/fields'
import { foreignNames, insteadOf } from '../../../src/config/foreign-options'
import { isRetrylineError } from '../../../src/errors'
import { memoryHooks } from '../../../src/observe'
import { silentLogger } from '../../../src/ports'
import { exponential } from '../../../src/topology'

const client = { consumer: () => ({}), producer: () => ({}), admin: () => ({}) }
const base = {
  kafka: client,
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1m', '10m'],
  handler: () => undefined,
  logger: silentLogger,
}

const BATCH = { handler: undefined, batchHandler: () => undefined }

function problemsOf(options: unknown): readonly string[] {
  try {
    resolveOptions(options)
  } catch (error) {
    if (!isRetrylineError(error, 'RETRYLINE_CONFIG')) throw error
    for (const problem of error.problems) expect(error.message).toContain(problem)
    return error.problems
  }
  return []
}

/** Problems of the base with these options over it. */
const withOptions = (options: object): readonly string[] => problemsOf({ ...base, ...options })

describe('P13: one clear line for each bad option', () => {
  test.each<[string, object, RegExp]>([
    ['unknown option', { concurency: 4 }, /^concurency: there is no such option; did you mean concurrency\?$/],
    [
      'a word of kafkajs',
      { fromBeginning: true },
      /^fromBeginning: there is no such option; startFrom takes 'earliest'/,
    ],
    ['a stranger', { zebra: 1 }, /^zebra: there is no such option; take it out$/],
    ['kafka is no client', { kafka: { brokers: [] } }, /^kafka: an object with brokers has no \.consumer\(\)/],
    ['kafka null', { kafka: null }, /^kafka: null has no/],
    ['kafka missing', { kafka: undefined }, /^kafka: is missing; give your kafkajs client/],
    ['group empty', { groupId: '' }, /^groupId: "" is not a group; give text/],
    ['group with a line end', { groupId: 'a\nb' }, /^groupId: "a\\nb" is not a group/],
    ['group with spaces at its end', { groupId: 'a ' }, /^groupId: "a " is not a group/],
    ['group too long', { groupId: 'g'.repeat(256) }, /^groupId: "g+…? is not a group; give text of 1 to 255/],
    ['no topic', { topic: [] }, /^topic: an empty list names no topic/],
    ['illegal topic', { topic: 'a b' }, /^topic: "a b" is not a legal topic name/],
    ['illegal topic in a list', { topic: ['a', 'b/c'] }, /^topic\[1\]: "b\/c" is not a legal/],
    ['topic twice', { topic: ['a', 'b', 'a'] }, /^topic\[2\]: "a" is named twice/],
    ['topic is a number', { topic: 4 }, /^topic: 4 is not text/],
    ['topic too long', { topic: 't'.repeat(250) }, /^topic: .* is 250 characters long/],
    ['schedule is text', { schedule: '1m' }, /^schedule: '1m' is not a schedule/],
    ['schedule without unit', { schedule: ['100'] }, /^schedule\[0\]: '100' is not a duration \(it has no unit\)/],
    ['schedule with a space', { schedule: ['1 m'] }, /^schedule\[0\]: '1 m' is not a duration \(it has a space\)/],
    ['schedule in parts', { schedule: ['1.5h'] }, /^schedule\[0\]: '1\.5h' is not .*'90m' for an hour and a half/],
    ['schedule negative', { schedule: ['-5m'] }, /^schedule\[0\]: '-5m'/],
    ['schedule of months', { schedule: ['1m', '1M'] }, /^schedule\[1\]: '1M'/],
    ['schedule of 0', { schedule: [0] }, /^schedule\[0\]: 0 is no wait; .*set immediate: \{ tries: 1, delay: 0 \}/],
    ["schedule of '0s'", { schedule: ['1m', '0s'] }, /^schedule\[1\]: '0s' is no wait/],
    ['schedule of rubbish', { schedule: [{ type: 'exponential' }] }, /^schedule\[0\]: /],
    ['too many attempts', { schedule: Array<string>(10).fill('1m') }, /^schedule: 10 retries .* allowManyAttempts/],
    ['too many, by backoff', { schedule: exponential({ first: '1s', retries: 10 }) }, /^schedule\.retries: 10/],
    ['handler missing', { handler: undefined }, /^handler: is missing/],
    [
      'batchHandler beside handler',
      { batchHandler: () => 1 },
      /^batchHandler: is there beside handler; give one of the two$/,
    ],
    [
      'batchHandler is no function',
      { handler: undefined, batchHandler: [] },
      /^batchHandler: an empty list is not a function; give a handler of many records/,
    ],
    [
      'batch without batchHandler',
      { batch: {} },
      /^batch: says how large a batch gets, and handler takes one .*batchHandler$/,
    ],
    [
      'batch maxRecords',
      { ...BATCH, batch: { maxRecords: 0 } },
      /^batch\.maxRecords: 0 is out of range; .* 1 to 10000$/,
    ],
    ['batch maxBytes', { ...BATCH, batch: { maxBytes: '1B' } }, /^batch\.maxBytes: "1B" is out of range/],
    ['batch linger', { ...BATCH, batch: { linger: '2m' } }, /^batch\.linger: "2m" is too long; give 0, or a duration/],
    [
      'batch extra',
      { ...BATCH, batch: { size: 3 } },
      /^batch: an object with size is not understood; give \{ maxRecords/,
    ],
    [
      'quick tries of a batch',
      { ...BATCH, immediate: { tries: 1, delay: 0 } },
      /^immediate: gives quick tries to one record at a time, and batchHandler takes many; take it out$/,
    ],
    [
      'exactly-once of a batch',
      { ...BATCH, delivery: 'exactly-once' },
      /^delivery: 'exactly-once' is for one record at a time, and batchHandler takes many; take it out, or give handler$/,
    ],
    ['handler is no function', { handler: {} }, /^handler: an empty object is not a function/],
    ['classify', { classify: [{ verdict: 'retry' }] }, /^classify\[0\]\.match/],
    ['unknownErrors', { unknownErrors: 'ignore' }, /^unknownErrors: "ignore" .*give 'dead-letter' or 'retry'$/],
    ['ordering', { ordering: 'none' }, /^ordering: "none" .*'partition', 'key' or 'unordered'$/],
    ['concurrency 0', { concurrency: 0 }, /^concurrency: 0 is out of range; give a whole number from 1 to 1000$/],
    [
      'concurrency 1.5',
      { concurrency: 1.5 },
      /^concurrency: 1.5 is no whole number; give a whole number from 1 to 1000$/,
    ],
    ['concurrency NaN', { concurrency: NaN }, /^concurrency: NaN is no whole number/],
    ['concurrency text', { concurrency: '8' }, /^concurrency: "8" is not a number but text; give a whole number/],
    ['concurrency in words', { concurrency: 'all' }, /^concurrency: "all" is not a number; give/],
    ['concurrency null', { concurrency: null }, /^concurrency: null is not a number/],
    ['concurrency bigint', { concurrency: 8n }, /^concurrency: 8n is not a number/],
    ['immediate tries', { immediate: { tries: 6, delay: 10 } }, /^immediate\.tries: 6 is out of range/],
    ['immediate delay', { immediate: { tries: 1, delay: '6s' } }, /^immediate\.delay: "6s" is too long/],
    ['immediate extra', { immediate: { tries: 1, delay: 1, max: 2 } }, /^immediate: an object with .* not understood/],
    [
      'immediate too slow',
      { immediate: { tries: 5, delay: '5s' }, handlerTimeout: '20s' },
      /^immediate: .*handlerTimeout/,
    ],
    ['startFrom', { startFrom: 'beginning' }, /^startFrom: "beginning" is not a place to start/],
    ['startFrom, bad Date', { startFrom: new Date('x') }, /^startFrom: an invalid Date/],
    [
      'duration without unit',
      { handlerTimeout: '100' },
      /^handlerTimeout: "100" is not a duration \(it has no unit\); give .*'10ms' to '1d'/,
    ],
    ['duration too short', { handlerTimeout: 5 }, /^handlerTimeout: 5 is too short/],
    ['duration too long', { shutdownTimeout: '2h' }, /^shutdownTimeout: "2h" is too long/],
    ['publishTimeout', { publishTimeout: 0 }, /^publishTimeout: 0 is too short; give a duration from '1s'/],
    ['handlerTimeout of nothing', { handlerTimeout: '0s' }, /^handlerTimeout: "0s" is too short; give .*'10ms'/],
    ['commitInterval', { commitInterval: '5ms' }, /^commitInterval: "5ms" is too short/],
    ['deadline', { deadline: '-1h' }, /^deadline: "-1h" is not a duration/],
    [
      'deadline before the first retry',
      { deadline: '59s' },
      /^deadline: 59s is shorter than the first wait of the schedule \(1m\), .*longer deadline, or a shorter first wait$/,
    ],
    ['classify that is async', { classify: async () => 'retry' }, /^classify is async, .*make it a plain function/],
    [
      'classify with an async when',
      { classify: [{ match: { when: async () => true }, verdict: 'retry' }] },
      /^classify\[0\]\.match\.when is async/,
    ],
    [
      'classify with a wait that is none',
      { classify: [{ match: { code: 'X' }, verdict: retry('x', { after: '10 min' }) }] },
      /^classify\[0\]\.verdict\.after is '10 min': give a number of ms, 0 or more, or a duration such as '10m'$/,
    ],
    ['topicSetup', { topicSetup: 'auto' }, /^topicSetup: "auto"/],
    ['topicNames', { topicNames: { retry: () => 'a' } }, /^topicNames: an object with retry is not a way/],
    ['topicNames that throw', { topicNames: thrower() }, /^topicNames: your function threw/],
    [
      'topicNames that collide',
      { topicNames: { retry: () => 'x', deadLetter: () => 'y' } },
      /^retry topic 10m of 'orders': 'x' .* topic of its own; choose another topic, or other topicNames$/,
    ],
    ['formerGroupIds', { formerGroupIds: 'old' }, /^formerGroupIds: "old" is not a list/],
    ['formerGroupIds with this group', { formerGroupIds: ['billing'] }, /^formerGroupIds: "billing" is groupId itself/],
    ['formerTiers', { formerTiers: ['5'] }, /^formerTiers\[0\]: "5" is not a duration/],
    ['release', { release: 'r'.repeat(129) }, /^release: .* is not a release; give text of 1 to 128/],
    ['hooks', { hooks: [{ on: 1 }] }, /^hooks\[0\]: an object with on has no method of any event/],
    [
      'hooks with a slip',
      { hooks: { onDeadLettered: () => 0 } },
      /^hooks: .*onDeadLettered .*did you mean deadLettered\?$/,
    ],
    ['hooks with no function', { hooks: { attempt: 1 } }, /^hooks: .*has a attempt that is not a function/],
    ['logger', { logger: { info: () => 0 } }, /^logger: an object with info has not all of/],
    ['session too long', { sessionTimeout: '1h' }, /^sessionTimeout: "1h" is too long/],
    [
      'heartbeat not below session',
      { sessionTimeout: '3s' },
      /^heartbeatInterval: 3000 ms is not below sessionTimeout/,
    ],
    ['buffer in words', { maxBufferedBytes: '64 megabytes' }, /^maxBufferedBytes: "64 megabytes" is not a size/],
    ['buffer too small', { maxBufferedBytes: 10 }, /^maxBufferedBytes: 10 is out of range/],
    ['buffer records', { maxBufferedRecords: 0 }, /^maxBufferedRecords: 0 is out of range/],
    ['allowManyAttempts', { allowManyAttempts: 'yes' }, /^allowManyAttempts: "yes" is not a yes or no/],
    ['decode', { decode: 'avro' }, /^decode: "avro" is not a way to decode/],
    ['schema', { schema: { parse: () => 1 } }, /^schema: an object with parse is not a Standard Schema/],
    ['schema of another version', { schema: { '~standard': { version: 2, validate: () => 1 } } }, /^schema: /],
    ['a symbol', { groupId: Symbol('x') }, /^groupId: Symbol\(x\) is not a group/],
    ['a cycle', { groupId: cycle() }, /^groupId: an object with self is not a group/],
    ['a getter inside that throws', { immediate: throwing({ delay: 1 }, 'tries') }, /^immediate: reading it threw/],
    [
      'a backoff whose getter throws',
      { schedule: throwing({ type: 'exponential' }, 'retries') },
      /^schedule: reading it/,
    ],
  ])('%s', (_name, options, line) => {
    const problems = withOptions(options)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(line)
    expect(problems[0]).not.toContain('\n')
    expect(problems[0]?.length).toBeLessThan(400)
  })

  test.each([
    ['maxRetries', 'schedule'],
    ['retries', 'schedule'],
    ['retry', 'schedule'],
    ['backoff', 'schedule'],
    ['dlq', 'topicNames'],
    ['deadLetterTopic', 'topicNames'],
    ['onError', 'hooks'],
    ['onRetry', "consumer.on('retried'"],
    ['topics', 'topic'],
    ['fromBeginning', 'startFrom'],
    ['eachMessage', 'handler'],
    ['partitionsConsumedConcurrently', 'concurrency'],
    ['autoCommit', 'take it out'],
    ['brokers', 'kafka: new Kafka('],
    ['shouldRetry', 'classify'],
    ['autocreatetopics', "topicSetup: 'create'"],
    ['ttl', 'deadline'],
    ['timeout', 'handlerTimeout'],
  ])('%s, a name of other libraries, is told apart and led to %s', (name, ours) => {
    const [problem, ...others] = withOptions({ [name]: 1 })
    expect(others).toEqual([])
    expect(problem?.startsWith(`${name}: there is no such option; `)).toBe(true)
    expect(problem).toContain(ours)
  })

  test('no name of other libraries is one of ours, and each names one of ours or says to take it out', () => {
    const ours = Object.keys(FIELDS)
    const foreign = foreignNames()
    expect(foreign.length).toBeGreaterThan(100)
    expect(foreign.filter((name) => ours.some((own) => own.toLowerCase() === name))).toEqual([])
    const pattern = new RegExp(`\\b(${ours.join('|')})\\b|take it out`)
    expect(foreign.filter((name) => !pattern.test(insteadOf(name) ?? ''))).toEqual([])
    expect(['toString', '__proto__', 'constructor'].map(insteadOf)).toEqual([undefined, undefined, undefined])
  })

  test('derived names are checked as well', () => {
    const problems = withOptions({ topic: 't'.repeat(245) })
    expect(problems).toHaveLength(2)
    expect(problems.join()).toMatch(/retry topic 1m of .* is 254 characters long.*retry topic 10m/s)
    expect(withOptions({ topic: 'orders', topicNames: 'by-topic-and-group', groupId: 'a b' })[0]).toMatch(/legal topic/)
  })

  test('options that throw when they are read', () => {
    expect(problemsOf(throwing(base, 'ordering'))).toEqual([
      'ordering: reading it threw (Error: no entry); give a plain value',
    ])
    const evil = new Proxy(base, { ownKeys: () => expect.fail('unreadable') })
    expect(problemsOf(evil)).toEqual([expect.stringMatching(/^options: reading them threw/)])
  })

  test('several at once: all are told, together', () => {
    const problems = problemsOf({ groupId: 7, topic: 'a b', schedule: ['100', '-5m'], concurency: 1, decode: 3 })
    expect(problems.map((problem) => problem.split(':')[0])).toEqual([
      'concurency',
      'kafka',
      'groupId',
      'topic',
      'handler',
      'decode',
      'schedule[0]',
      'schedule[1]',
    ])
  })

  test.each([undefined, null, 'options', 4, [], () => 1])('options that are no object: %s', (options) => {
    expect(problemsOf(options)).toEqual([expect.stringMatching(/^options: .* is not an object/)])
  })
})

describe('what comes of good options', () => {
  test('defaults', () => {
    const settings = resolveOptions(base)
    expect(settings).toMatchObject({
      groupId: 'billing',
      topics: ['orders'],
      unknownErrors: 'dead-letter',
      ordering: 'partition',
      concurrency: 16,
      immediate: { tries: 0, delayMs: 0 },
      startFrom: 'earliest',
      handlerTimeoutMs: 30_000,
      shutdownTimeoutMs: 20_000,
      publishTimeoutMs: 180_000,
      commitIntervalMs: 200,
      deadlineMs: undefined,
      topicSetup: 'verify',
      sessionTimeoutMs: 30_000,
      heartbeatIntervalMs: 3000,
      rebalanceTimeoutMs: 60_000,
      maxBufferedBytes: 67_108_864,
      maxWaitingBytes: 25_165_824,
      maxBufferedRecords: 50_000,
      decode: undefined,
      schema: undefined,
      hooks: [],
    })
    expect(settings.topology.allTopics().map(({ topic }) => topic)).toEqual([
      'orders',
      'orders.retry.1m',
      'orders.retry.10m',
      'orders.dlq',
    ])
  })

  test('R07: the publish time-out is not below what kafkajs needs for its own tries', () => {
    const requestTimeoutMs = 30_000
    const tries = 1 + 5
    expect(resolveOptions(base).publishTimeoutMs).toBeGreaterThanOrEqual(requestTimeoutMs * tries)
  })

  test('everything given', () => {
    const hooks = memoryHooks()
    const settings = resolveOptions({
      ...base,
      topic: ['orders', 'refunds'],
      schedule: exponential({ first: '1s', retries: 12, max: '10s', jitter: 0.2 }),
      allowManyAttempts: true,
      immediate: { tries: 2, delay: 0 },
      startFrom: new Date(1000),
      shutdownTimeout: 0,
      deadline: '1d',
      topicNames: 'by-topic-and-group',
      formerGroupIds: ['old'],
      formerTiers: ['5m', '1s'],
      release: '1.2.3',
      hooks,
      maxBufferedBytes: '8MB',
      schema: z.string(),
    })
    expect(settings).toMatchObject({
      immediate: { tries: 2, delayMs: 0 },
      startFrom: 1000,
      shutdownTimeoutMs: 0,
      deadlineMs: 86_400_000,
      release: '1.2.3',
      maxBufferedBytes: 8_000_000,
      maxWaitingBytes: 8_000_000,
      decode: 'json',
    })
    expect(settings.hooks[0]).toBe(hooks)
    expect(settings.topology.maxAttempts).toBe(13)
    expect(settings.topology.tiers.map(({ name, former }) => `${name}${former ? '!' : ''}`)).toEqual([
      '1s',
      '2s',
      '4s',
      '8s',
      '10s',
      '5m!',
    ])
    expect(settings.topology.allTopics().map(({ topic }) => topic)).toContain('refunds.billing.retry.10s')
  })

  test('a number in the schedule that was perhaps meant in seconds is good, and warned of', () => {
    const warnings = (schedule: unknown): readonly string[] => resolveOptions({ ...base, schedule }).warnings
    expect(warnings([5, '500ms', 1000, 999])).toEqual([
      "schedule[0]: 5 is 5 ms; write '5s' if seconds are meant, and '5ms' if not",
      "schedule[3]: 999 is 999 ms; write '999s' if seconds are meant, and '999ms' if not",
    ])
    expect(warnings(exponential({ first: 10, retries: 2 }))).toEqual([expect.stringMatching(/^schedule\.first: 10 is/)])
    expect(warnings(exponential({ first: '10ms', max: 100, retries: 2 }))).toEqual([
      expect.stringMatching(/^schedule\.max: 100 is/),
    ])
    expect(warnings(['5ms', '1m'])).toEqual([])
    expect(warnings([])).toEqual([])
  })

  test('a deadline as long as the first wait lets one retry through', () => {
    expect(resolveOptions({ ...base, deadline: '1m' }).deadlineMs).toBe(60_000)
    expect(resolveOptions({ ...base, schedule: [], deadline: '1s' }).deadlineMs).toBe(1000)
  })

  test('is frozen, and leaves the options as they were', () => {
    const options = { ...base, topic: ['orders'], formerGroupIds: ['old'] }
    const settings = resolveOptions(options)
    for (const part of [settings, settings.topics, settings.immediate, settings.hooks, settings.topologyInput]) {
      expect(Object.isFrozen(part)).toBe(true)
    }
    expect([options, options.topic, options.kafka, options.formerGroupIds].some(Object.isFrozen)).toBe(false)
  })

  test('undefined is left out; an object without prototype and getters are fine', () => {
    expect(withOptions({ concurrency: undefined, release: undefined })).toEqual([])
    expect(resolveOptions(Object.assign(Object.create(null), base)).groupId).toBe('billing')
    expect(
      resolveOptions({ ...base, immediate: Object.assign(Object.create(null), { tries: 1, delay: 5 }) }).immediate,
    ).toEqual({
      tries: 1,
      delayMs: 5,
    })
    const options = Object.defineProperty({ ...base }, 'groupId', { get: () => 'by-getter', enumerable: true })
    expect(resolveOptions(options).groupId).toBe('by-getter')
  })
})

/** The object with a getter that throws. */
function throwing(object: object, name: string): object {
  return Object.defineProperty({ ...object }, name, {
    enumerable: true,
    get() {
      throw new Error('no entry')
    },
  })
}

function thrower(): object {
  const retry = (): string => {
    throw new Error('no name')
  }
  return { retry, deadLetter: retry }
}

function cycle(): object {
  const object: { self?: object } = {}
  object.self = object
  return object
}
