import { AssertionError } from 'node:assert'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  createResilientConsumer,
  NonRetryableError,
  RetryableError,
  silentLogger,
  type Handler,
  type ResilientConsumerOptions,
} from '../../../../src/index'
import {
  createFakeKafka,
  expectCommitted,
  expectDeadLettered,
  expectNothingDeadLettered,
  expectRetried,
  record,
  runToEnd,
} from '../../../../src/testing'

const START = Date.UTC(2030, 0, 1)

async function shop(handler: Handler, options: Partial<ResilientConsumerOptions> = {}) {
  const kafka = createFakeKafka({ topics: { orders: 1, bills: 1 }, startAt: START })
  const consumer = createResilientConsumer({
    kafka,
    groupId: 'billing',
    topic: 'orders',
    schedule: ['1m', '10m'],
    topicSetup: 'create',
    logger: silentLogger,
    handler,
    ...options,
  })
  onTestFinished(async () => void (await consumer.stop()))
  await consumer.start()
  return kafka
}

/** The message with which an assertion fails; it must be one that every test runner takes for a failed assertion. */
function failure(assertion: () => unknown): string {
  try {
    assertion()
  } catch (error) {
    expect(error).toBeInstanceOf(AssertionError)
    expect(error).toMatchObject({ code: 'ERR_ASSERTION', name: 'AssertionError', generatedMessage: false })
    return (error as Error).message
  }
  throw new Error('the assertion holds')
}

const down = new RetryableError('the bank is down')
const failing: Handler = ({ message }) => {
  if (String(message.key) === 'bad') throw new NonRetryableError('no such customer')
  throw down
}

describe('expectDeadLettered', () => {
  async function afterTheEnd() {
    const kafka = await shop(failing, { release: '1.2.3' })
    kafka.produce('orders', record({ key: 'order-17', value: { total: 42 }, headers: { trace: 'a', none: null } }))
    kafka.produce('orders', record({ key: 'bad', value: 'not JSON' }))
    await runToEnd(kafka)
    return kafka
  }

  it('finds by topic, key, value, reason, attempts, text and group, and gives the dead letters decoded', async () => {
    const kafka = await afterTheEnd()
    const [letter, ...others] = expectDeadLettered(kafka, {
      topic: 'orders',
      key: 'order-17',
      value: { total: 42 },
      reason: 'exhausted',
      attempts: 3,
      error: 'RetryableError: the bank is down',
      because: /./,
      groupId: 'billing',
      times: 1,
    })
    expect(others).toEqual([])
    expect(letter).toMatchObject({
      topic: 'orders',
      deadLetterTopic: 'orders.dlq',
      key: 'order-17',
      value: { total: 42 },
      headers: { trace: 'a', none: null },
      bytes: { key: Buffer.from('order-17'), value: Buffer.from('{"total":42}') },
      original: { partition: 0, offset: 0n, timestamp: START },
      reason: 'exhausted',
      attempts: 3,
      errorClass: 'RetryableError',
      error: 'the bank is down',
      firstFailedAt: new Date(START),
      lastFailedAt: new Date(START + 11 * 60_000),
      history: [{ attempt: 1 }, { attempt: 2 }, { attempt: 3 }],
    })
    expect(Object.keys(letter?.headers ?? {})).toEqual(['trace', 'none'])
    expect(letter?.stack).toContain('expect.test.ts')
  })

  it.each([
    [{}, 2],
    [{ topic: 'orders.dlq' }, 2],
    [{ key: Buffer.from('bad') }, 1],
    [{ value: 'not JSON' }, 1],
    [{ value: Buffer.from('not JSON') }, 1],
    [{ value: '{"total":42}' }, 1],
    [{ value: { total: 42, note: undefined } }, 1],
    [{ error: /bank|customer/g }, 2],
    [{ error: 'customer', reason: 'non-retryable' }, 1],
    [{ topic: undefined, reason: 'exhausted' }, 1],
  ])('%j finds %i', async (wanted, count) => {
    expect(expectDeadLettered(await afterTheEnd(), wanted as never)).toHaveLength(count)
  })

  it('fails with what was expected and what is there instead, the nearest first', async () => {
    const kafka = await afterTheEnd()
    expect(failure(() => expectDeadLettered(kafka, { topic: 'orders', key: 'order-17', reason: 'timeout' }))).toBe(
      [
        "expected a dead letter of orders with key 'order-17', reason 'timeout', found none. The dead letters are:",
        "  orders.dlq/0@1  key 'order-17'  value '{\"total\":42}'  exhausted after 3 attempts  " +
          'RetryableError: the bank is down  (another reason)',
        "  orders.dlq/0@0  key 'bad'  value 'not JSON'  non-retryable after 1 attempt  " +
          'NonRetryableError: no such customer  (another key, reason)',
      ].join('\n'),
    )
    expect(failure(() => expectDeadLettered(kafka, { times: 3 }))).toMatch(/^expected 3 dead letters, found 2\. The/)
    expect(failure(() => expectDeadLettered(kafka, { value: { total: 1 } }))).toContain(
      'with value {"total":1}, found none',
    )
    expect(failure(() => expectDeadLettered(kafka, { error: /nobody/i }))).toContain('with error /nobody/i, found none')
  })

  it('says what still waits for a retry, and not what has been retried', async () => {
    const kafka = await shop(failing)
    expect(failure(() => expectDeadLettered(kafka))).toBe(
      'expected a dead letter, found none. There are no dead letters at all.',
    )
    kafka.produce('orders', record({ key: 'order-17', value: '1' }))
    await kafka.clock.settle()
    const waiting =
      "Waiting for a retry (move the clock):\n  orders.retry.1m/0@0  key 'order-17'  value '1'  " +
      'attempt 2, due 2030-01-01T00:01:00.000Z  RetryableError: the bank is down'
    expect(failure(() => expectDeadLettered(kafka))).toContain(waiting)
    await kafka.clock.advance('2m')
    const later = failure(() => expectDeadLettered(kafka))
    expect(later).toContain('orders.retry.10m/0@0')
    expect(later).not.toContain('orders.retry.1m/0@0')
  })

  it('finds dead letters on topics of any name', async () => {
    const topicNames = {
      retry: (topic: string, delay: string) => `later-${topic}-${delay}`,
      deadLetter: (topic: string) => `dead-${topic}`,
    }
    const kafka = await shop(failing, { topicNames })
    kafka.produce('orders', record({ key: 'order-17', value: '1' }))
    await runToEnd(kafka)
    expect(expectDeadLettered(kafka, { topic: 'orders' })).toMatchObject([{ deadLetterTopic: 'dead-orders' }])
    expect(expectRetried(kafka, { delay: '10m' })).toMatchObject([{ retryTopic: 'later-orders-10m', attempt: 3 }])
  })

  it('is not told by many lines', async () => {
    const kafka = await shop(failing)
    for (let i = 0; i < 30; i++) kafka.produce('orders', record({ key: 'bad', value: String(i) }))
    await runToEnd(kafka)
    const message = failure(() => expectDeadLettered(kafka, { key: 'x' }))
    expect(message.split('\n')).toHaveLength(22)
    expect(message).toMatch(/… and 10 more$/)
  })
})

describe('expectNothingDeadLettered', () => {
  it('holds while there is none, and lists what there is', async () => {
    const kafka = await shop(failing)
    expectNothingDeadLettered(kafka)
    kafka.produce('orders', record({ key: 'bad', value: '1' }))
    await runToEnd(kafka)
    expectNothingDeadLettered(kafka, { key: 'order-17' })
    expect(failure(() => expectNothingDeadLettered(kafka))).toBe(
      "expected no dead letter, found 1:\n  orders.dlq/0@0  key 'bad'  value '1'  non-retryable after 1 attempt  " +
        'NonRetryableError: no such customer',
    )
    expect(failure(() => expectNothingDeadLettered(kafka, { reason: 'non-retryable' }))).toMatch(
      /^expected no dead letter with/,
    )
  })
})

describe('expectRetried', () => {
  it('finds what went to a retry topic, handled since or not', async () => {
    const kafka = await shop(failing)
    kafka.produce('orders', record({ key: 'order-17', value: { total: 42 } }))
    await runToEnd(kafka)
    expect(
      expectRetried(kafka, { topic: 'orders' }).map(({ delay, attempt, dueAt }) => [
        delay,
        attempt,
        dueAt.getTime() - START,
      ]),
    ).toEqual([
      ['1m', 2, 60_000],
      ['10m', 3, 660_000],
    ])
    expect(expectRetried(kafka, { delay: '10m', attempt: 3, key: 'order-17', times: 1 })).toMatchObject([
      { retryTopic: 'orders.retry.10m', value: { total: 42 }, error: 'the bank is down' },
    ])
    expect(failure(() => expectRetried(kafka, { delay: '10m', attempt: 2 }))).toMatch(
      /^expected a retry with delay '10m', attempt 2, found none\. The retries are:\n.*\(another (delay|attempt)\)\n/,
    )
    expect(failure(() => expectRetried(kafka, { times: 1 }))).toMatch(/^expected 1 retry, found 2/)
  })
})

describe('expectCommitted', () => {
  it('wants everything, or an offset, and says how far the group has come', async () => {
    const kafka = await shop((_, { attempt }) => {
      if (attempt === 1) throw down
    })
    expectCommitted(kafka, { groupId: 'billing', topic: 'orders' })
    kafka.produce('orders', record({ value: '1' }))
    kafka.produce('orders', record({ value: '2' }))
    expect(failure(() => expectCommitted(kafka, { groupId: 'billing', topic: 'orders' }))).toMatch(
      /^expected group billing to have committed all of orders, but\n {2}orders\/0 (is at 0|has nothing committed), and the log ends at 2$/,
    )
    await runToEnd(kafka)
    expectCommitted(kafka, { groupId: 'billing', topic: 'orders' })
    expectCommitted(kafka, { groupId: 'billing', topic: 'orders', partition: 0, offset: 2n })
    expectCommitted(kafka, { groupId: 'billing.retry.1m', topic: 'orders.retry.1m' })
    expect(
      failure(() => expectCommitted(kafka, { groupId: 'billing', topic: 'orders', partition: 0, offset: '1' })),
    ).toContain('orders/0 is at 2, and 1 was expected')
    kafka.produce('bills', record({ value: '1' }))
    expect(failure(() => expectCommitted(kafka, { groupId: 'biling', topic: 'bills' }))).toMatch(
      /bills\/0 has nothing committed, and the log ends at 1\nThere is no such group; groups: billing,/,
    )
  })
})

describe('a question that makes no sense never passes', () => {
  const kafka = createFakeKafka({ topics: { orders: 1 } })
  const refuses = (ask: () => unknown, says: RegExp): void => {
    expect(ask).toThrow(expect.objectContaining({ code: 'RETRYLINE_TESTING' }))
    expect(ask).toThrow(says)
  }

  it.each<[unknown, RegExp]>([
    [{ tpoic: 'orders' }, /tpoic is 'orders'; there are only topic, key, value/],
    [{ key: 17 }, /key is 17; give text, a Buffer or null/],
    [{ value: 17 }, /value is 17; give an object/],
    [{ reason: 'exausted' }, /reason is 'exausted'; give one of exhausted, non-retryable/],
    [{ attempts: '3' }, /attempts is '3'; give a whole number from 1/],
    [{ times: 0 }, /times is 0; .*expectNothingDeadLettered/],
    [{ error: 5 }, /error is 5; give a part of the text, or a pattern/],
    ['orders', /what to look for is 'orders'; give an object/],
    [{ delay: '1m' }, /delay is '1m'; there are only/],
  ])('expectDeadLettered(kafka, %j)', (wanted, says) => {
    refuses(() => expectDeadLettered(kafka, wanted as never), says)
  })

  it('of the others', () => {
    refuses(() => expectNothingDeadLettered(kafka, { times: 1 } as never), /times is 1; there are only/)
    refuses(() => expectRetried(kafka, { reason: 'exhausted' } as never), /reason is 'exhausted'; there are only/)
    refuses(() => expectCommitted(kafka, undefined as never), /what to look for is undefined; give \{ groupId/)
    refuses(() => expectCommitted(kafka, { topic: 'orders' } as never), /groupId is undefined; give the name/)
    refuses(() => expectCommitted(kafka, { groupId: 'g' } as never), /topic is undefined; give the name/)
    refuses(
      () => expectCommitted(kafka, { groupId: 'g', topic: 'orders', group: 'g' } as never),
      /group is 'g'; there are only/,
    )
    refuses(
      () => expectCommitted(kafka, { groupId: 'g', topic: 'orders', offset: 3n }),
      /partition is undefined; an offset is of one/,
    )
    refuses(
      () => expectCommitted(kafka, { groupId: 'g', topic: 'orders', partition: 0, offset: -1 }),
      /offset is -1; give/,
    )
    refuses(() => expectCommitted(kafka, { groupId: 'g', topic: 'order' }), /there is no order on the fake broker/)
  })

  it('of anything but a fake broker', async () => {
    for (const other of [undefined, null, 'kafka', {}, kafka.client()]) {
      const says = /the first argument is .*; give the fake broker that createFakeKafka\(\) returned/
      refuses(() => expectDeadLettered(other as never), says)
      refuses(() => expectNothingDeadLettered(other as never), says)
      refuses(() => expectRetried(other as never), says)
      refuses(() => expectCommitted(other as never, { groupId: 'g', topic: 'orders' }), says)
      await expect(runToEnd(other as never)).rejects.toThrow(says)
    }
  })
})
