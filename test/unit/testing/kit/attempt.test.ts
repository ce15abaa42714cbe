import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  createResilientConsumer,
  deadLetterOn,
  exponential,
  NonRetryableError,
  outage,
  RetryableError,
  retryOn,
  silentLogger,
  type Handler,
  type HandlerContext,
  type RetrylineEvent,
} from '../../../../src/index'
import { attempt, createFakeKafka, record, type AttemptOptions } from '../../../../src/testing'

const order = record({ key: 'order-17', value: { total: 42 } })
const down = new RetryableError('the bank is down')
const fails: Handler = () => {
  throw down
}

describe('attempt(): the outcome', () => {
  it('succeeded', async () => {
    expect(await attempt(() => undefined, order)).toEqual({
      outcome: 'succeeded',
      calls: 1,
      timedOut: false,
      abandoned: false,
      problems: [],
      sent: [],
      elapsedMs: 0,
    })
  })

  it.each([
    [1, '1m', 60_000, 'orders.retry.1m'],
    [2, '10m', 600_000, 'orders.retry.10m'],
    [3, '1h', 3_600_000, 'orders.retry.1h'],
  ])('attempt %i would be retried, after %s', async (number, tier, delayMs, to) => {
    const result = await attempt(fails, order, { attempt: number })
    expect(result).toMatchObject({ outcome: 'retry', tier, delayMs, to, calls: 1, sent: [] })
    expect(result).toMatchObject({
      error: 'RetryableError: the bank is down',
      because: 'the handler threw a RetryableError',
    })
    expect(result.thrown).toBe(down)
  })

  it('the last attempt would be dead-lettered', async () => {
    expect(
      await attempt(async () => fails(undefined as never, undefined as never), order, { attempt: 4 }),
    ).toMatchObject({
      outcome: 'dead-letter',
      reason: 'exhausted',
      to: 'orders.dlq',
      thrown: down,
    })
  })

  it('what cannot be helped is dead-lettered at once', async () => {
    const hopeless = () => Promise.reject(new NonRetryableError('no such customer'))
    expect(await attempt(hopeless, order)).toMatchObject({ outcome: 'dead-letter', reason: 'non-retryable', calls: 1 })
    expect(await attempt(() => JSON.parse('{') as unknown, order)).toMatchObject({
      outcome: 'dead-letter',
      reason: 'non-retryable',
      thrown: expect.any(SyntaxError) as SyntaxError,
    })
  })

  it.each([1, 4])('attempt %i at a record whose dependency is down is held, and not counted', async (number) => {
    const error = outage('the bank')
    const result = await attempt(() => Promise.reject(error), order, { attempt: number })
    expect(result).toMatchObject({
      outcome: 'held',
      because: 'the handler says that it is down',
      thrown: error,
      calls: 1,
    })
  })

  it('a decoder that needs something that is down: held too, without a call', async () => {
    const decode = (): never => {
      throw outage('the registry')
    }
    expect(await attempt(fails, order, { decode })).toMatchObject({
      outcome: 'held',
      because: 'the handler says that it is down',
      calls: 0,
    })
  })

  it('a handler that pauses and throws gets the record again', async () => {
    const asks: Handler = ({ pause }) => {
      pause()
      throw new Error('a break, please')
    }
    expect(await attempt(asks, order, { attempt: 2 })).toMatchObject({
      outcome: 'again',
      calls: 1,
      thrown: new Error('a break, please'),
    })
  })

  it('a record that was replayed for another group is skipped', async () => {
    const headers = { 'x-replayed-from-dlq': 'true', 'x-replay-for-group': 'others' }
    expect(await attempt(fails, record({ value: '1', headers }))).toMatchObject({ outcome: 'skipped', calls: 0 })
  })
})

describe('attempt(): what the handler is given', () => {
  async function seen(options: AttemptOptions<any, any>, rec = order) {
    let seen: { payload: Parameters<Handler>[0]; ctx: HandlerContext<any>; class: string } | undefined
    await attempt((payload, ctx) => void (seen = { payload, ctx, class: ctx.constructor.name }), rec, options)
    return seen!
  }

  it('is the context of production', async () => {
    const kafka = createFakeKafka({ topics: { orders: 1 } })
    let theirs: HandlerContext | undefined
    const consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: ['1m'],
      topicSetup: 'create',
      logger: silentLogger,
      handler: (_, ctx) => void (theirs = ctx),
    })
    await consumer.start()
    kafka.produce('orders', order)
    await kafka.clock.settle()
    await consumer.stop()
    const { ctx } = await seen({})
    expect(ctx.constructor).toBe(theirs!.constructor)
    expect(ctx).toMatchObject({ attempt: 1, maxAttempts: 4, tryInAttempt: 1, value: undefined })
    expect([ctx.dueAt, ctx.firstFailedAt]).toEqual([undefined, undefined])
  })

  it('has the place of the record at every attempt', async () => {
    const rec = record({
      key: 'k',
      value: '1',
      headers: { a: ['x', null] },
      topic: 'orders',
      partition: 2,
      offset: 17n,
      timestamp: 5,
    })
    for (const number of [1, 2, 4]) {
      const { payload, ctx } = await seen({ attempt: number }, rec)
      expect(payload).toMatchObject({
        topic: 'orders',
        partition: 2,
        message: { offset: '17', timestamp: '5', key: Buffer.from('k') },
      })
      expect(payload.message.headers).toMatchObject({ a: [Buffer.from('x'), null] })
      expect(ctx.attempt).toBe(number)
      expect(ctx.source.topic).toBe(['orders', 'orders.retry.1m', '', 'orders.retry.1h'][number - 1])
    }
  })

  it('tells of the failures before, as the schedule spaces them', async () => {
    const kafka = createFakeKafka({ startAt: Date.UTC(2030, 0, 1, 12) })
    const { ctx } = await seen({ attempt: 3, clock: kafka.clock })
    expect(ctx.dueAt).toBe(Date.UTC(2030, 0, 1, 12))
    expect(ctx.firstFailedAt).toEqual(new Date(Date.UTC(2030, 0, 1, 11, 49)))
  })

  it('has the value decoded', async () => {
    const schema = z.object({ total: z.number().transform(String) })
    expect((await seen({ decode: 'json' })).ctx.value).toEqual({ total: 42 })
    expect((await seen({ schema })).ctx.value).toEqual({ total: '42' })
    expect((await seen({ schema, attempt: 2 })).ctx.value).toEqual({ total: '42' })
    expect((await seen({ decode: (value) => value?.length })).ctx.value).toBe(12)
    const typed = await attempt<unknown, typeof schema>((_, { value }) => value.total.length, order, { schema })
    expect(typed.outcome).toBe('succeeded')
  })
})

describe('attempt(): options of the consumer', () => {
  it('schema and decode: what does not fit never reaches the handler', async () => {
    const schema = z.object({ total: z.string() })
    expect(await attempt(fails, order, { schema })).toMatchObject({
      outcome: 'dead-letter',
      reason: 'undecodable',
      calls: 0,
    })
    expect(await attempt(fails, record({ value: '{' }), { decode: 'json' })).toMatchObject({ reason: 'undecodable' })
    const registry = () => {
      throw new RetryableError('the schema registry is down')
    }
    expect(await attempt(fails, order, { decode: registry })).toMatchObject({ outcome: 'retry', tier: '1m', calls: 0 })
  })

  it('classify: rules and functions', async () => {
    const boom = () => Promise.reject(Object.assign(new Error('x'), { code: 'E_MINE' }))
    expect(await attempt(boom, order)).toMatchObject({ outcome: 'dead-letter', reason: 'unclassified' })
    expect(await attempt(boom, order, { unknownErrors: 'retry' })).toMatchObject({ outcome: 'retry' })
    const classify = [retryOn({ code: 'E_MINE' }, { because: 'it is mine' }), deadLetterOn({ name: 'RetryableError' })]
    expect(await attempt(boom, order, { classify })).toMatchObject({ outcome: 'retry', because: 'it is mine' })
    const broken = () => {
      throw new Error('a bug in the classifier')
    }
    const { problems } = await attempt(boom, order, { classify: broken })
    expect(problems.join()).toContain('a bug in the classifier')
  })

  it('schedule: its tiers, its jitter, and a wait that the server asks for', async () => {
    const schedule = exponential({ first: '2s', factor: 3, retries: 3, jitter: 0.5 })
    const result = await attempt(fails, order, { schedule, attempt: 2 })
    expect(result).toMatchObject({ outcome: 'retry', tier: '6s' })
    expect(result.delayMs).toBeGreaterThanOrEqual(6000)
    expect(result.delayMs).toBeLessThanOrEqual(9000)
    const busy = Object.assign(new Error('429'), { status: 429, headers: { 'retry-after': '1800' } })
    expect(await attempt(() => Promise.reject(busy), order)).toMatchObject({ outcome: 'retry', tier: '1h' })
    expect(await attempt(fails, order, { schedule: [] })).toMatchObject({ outcome: 'dead-letter', reason: 'exhausted' })
  })

  it('deadline: counts from the first failure', async () => {
    const deadline = '30m'
    expect(await attempt(fails, order, { deadline, attempt: 2 })).toMatchObject({ outcome: 'retry', tier: '10m' })
    expect(await attempt(fails, order, { deadline, attempt: 3 })).toMatchObject({
      outcome: 'dead-letter',
      reason: 'deadline',
    })
  })

  it('immediate: quick tries are calls of one attempt', async () => {
    const immediate = { tries: 2, delay: '100ms' }
    expect(await attempt(fails, order, { immediate })).toMatchObject({ outcome: 'retry', calls: 3, elapsedMs: 200 })
    const third: Handler = (_, { tryInAttempt }) => {
      if (tryInAttempt < 3) throw down
    }
    const result = await attempt(third, order, { immediate })
    expect(result).toMatchObject({ outcome: 'succeeded', calls: 3 })
    expect(result).not.toHaveProperty('thrown')
  })

  it('topics, names and groups', async () => {
    const options = { topic: ['bills', 'orders'], topicNames: 'by-topic-and-group', groupId: 'billing' } as const
    expect(await attempt(fails, order, options)).toMatchObject({ to: 'bills.billing.retry.1m' })
    expect(await attempt(fails, record({ value: '', topic: 'orders' }), options)).toMatchObject({
      to: 'orders.billing.retry.1m',
    })
    expect(await attempt(fails, record({ value: '', topic: 'any' }))).toMatchObject({ to: 'any.retry.1m' })
  })

  it('hooks see the events', async () => {
    const events: RetrylineEvent[] = []
    await attempt(fails, order, { hooks: { all: (event) => void events.push(event) } })
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['attempt', 'retried']))
  })

  it('may be those of a whole consumer', async () => {
    const options = {
      kafka: createFakeKafka({ topics: { orders: 1 } }),
      groupId: 'billing',
      topic: 'orders',
      schedule: ['5m'],
      handler: fails,
      startFrom: 'latest',
    } as const
    expect(await attempt(options.handler, order, { ...options, attempt: 1 })).toMatchObject({
      outcome: 'retry',
      tier: '5m',
    })
    expect(options.kafka.records('orders')).toEqual([])
  })
})

describe('attempt(): what is sent', () => {
  it('is told, decoded, where the attempt succeeds', async () => {
    const sends: Handler = ({ message }, ctx) => {
      ctx.send({ topic: 'invoices', key: message.key, value: '{"for":"order-17"}', headers: { h: 'x' } })
      ctx.send([{ topic: 'audit', key: null, value: 'seen', partition: 3 }])
    }
    for (const number of [1, 3]) {
      const { outcome, sent } = await attempt(sends, order, { attempt: number })
      expect(outcome).toBe('succeeded')
      expect(sent).toMatchObject([
        { topic: 'invoices', partition: 0, key: 'order-17', value: { for: 'order-17' }, headers: { h: 'x' } },
        { topic: 'audit', partition: 3, key: null, value: 'seen', bytes: { value: Buffer.from('seen') } },
      ])
    }
  })

  it('is nothing where it fails', async () => {
    const result = await attempt((_, ctx) => {
      ctx.send({ topic: 'invoices', key: null, value: '1' })
      throw down
    }, order)
    expect(result).toMatchObject({ outcome: 'retry', sent: [] })
  })

  it('may go to the topic that it came from, and is not handled', async () => {
    const echo: Handler = ({ topic, message }, ctx) => ctx.send({ topic, key: message.key, value: 'again' })
    expect(await attempt(echo, order)).toMatchObject({
      outcome: 'succeeded',
      calls: 1,
      sent: [{ topic: 'orders', value: 'again' }],
    })
  })

  it('is refused as in production', async () => {
    const wrong = (message: unknown) => attempt((_, ctx) => ctx.send(message as never), order)
    expect(await wrong({ topic: 'x', key: 17, value: '' })).toMatchObject({
      outcome: 'retry',
      error: expect.stringContaining('key is 17') as string,
    })
    expect(await wrong({ topic: 'no/topic', key: null, value: '' })).not.toMatchObject({ outcome: 'succeeded' })
    // It needs its context, as in production.
    expect(await attempt((_, { send }) => send({ topic: 'x', key: null, value: '' }), order)).toMatchObject({
      thrown: expect.any(TypeError) as TypeError,
    })
  })
})

describe('attempt(): time', () => {
  it('a handler that is aborted when its time is up', async () => {
    const kafka = createFakeKafka()
    const obedient: Handler = (_, { signal }) =>
      Promise.race([
        kafka.clock.sleep('1h'),
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
      ])
    const result = await attempt(obedient, order, { clock: kafka.clock, handlerTimeout: '5s' })
    expect(result).toMatchObject({ outcome: 'retry', timedOut: true, abandoned: false, elapsedMs: 5000 })
    expect(result.error).toContain('did not settle within 5000 ms')
    expect(await attempt(obedient, order, { clock: kafka.clock, attempt: 4 })).toMatchObject({
      outcome: 'dead-letter',
      reason: 'timeout',
    })
  })

  it('a handler that never settles is left to itself, and costs as much real time as is said', async () => {
    const began = performance.now()
    const result = await attempt(() => new Promise(() => undefined), order, { stallAfter: 20 })
    expect(result).toMatchObject({ outcome: 'retry', timedOut: true, abandoned: true, elapsedMs: 31_000 })
    expect(performance.now() - began).toBeLessThan(2000)
  })

  it('a decoder that never settles', async () => {
    const decode = () => new Promise<never>(() => undefined)
    expect(await attempt(fails, order, { decode, stallAfter: 20 })).toMatchObject({
      outcome: 'retry',
      timedOut: true,
      calls: 0,
    })
  })

  it('real work takes real time, and no other', async () => {
    const works = async () => {
      for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await attempt(works, order)).toMatchObject({ outcome: 'succeeded', elapsedMs: 0 })
  })

  it('moves a given clock no further than the attempt needs', async () => {
    const kafka = createFakeKafka()
    const fired: string[] = []
    kafka.clock.after(1000, () => void fired.push('a second later'))
    await attempt(fails, order, { clock: kafka.clock })
    expect([kafka.clock.monotonic(), fired]).toEqual([0, []])
    await attempt(() => kafka.clock.sleep('5s'), order, { clock: kafka.clock })
    expect([kafka.clock.monotonic(), fired]).toEqual([5000, ['a second later']])
    expect(kafka.clock.busy()).toEqual([])
  })

  it('many at once', async () => {
    const results = await Promise.all([1, 2, 3, 4].map((number) => attempt(fails, order, { attempt: number })))
    expect(results.map(({ outcome }) => outcome)).toEqual(['retry', 'retry', 'retry', 'dead-letter'])
  })
})

describe('attempt(): what is refused', () => {
  it.each<[AttemptOptions, RegExp]>([
    [{ attempt: 5 }, /attempt\(\): attempt is 5; the schedule makes attempts 1 to 4/],
    [{ attempt: 0 }, /attempt is 0; the schedule/],
    [{ attempt: '2' as never }, /attempt is '2'; the schedule/],
    [{ schedule: ['1m'], attempt: 3 }, /attempts 1 to 2/],
    [{ clock: {} as never }, /clock is an empty object; give the clock of a fake broker/],
    [{ stallAfter: -1 }, /stallAfter: -1 is not a number of real ms/],
    [{ topic: 'bills' }, /topic is 'orders'; the consumer reads bills/],
    [{ schedul: ['1m'] } as never, /schedul: there is no such option; did you mean schedule\?/],
    [{ handlerTimeout: '5' }, /handlerTimeout: "5" is not a duration/],
    [null as never, /the options is null; give \{ attempt: 2 \}/],
  ])('%j', async (options, says) => {
    await expect(attempt(fails, record({ value: '1', topic: 'orders' }), options)).rejects.toThrow(says)
  })

  it('a handler that is none', async () => {
    await expect(attempt(undefined as never, order)).rejects.toThrow(/handler: is missing/)
    await expect(attempt('x' as never, order)).rejects.toThrow(/handler: "x" is not a function/)
  })

  it('a clock that is told how patient to be', async () => {
    const { clock } = createFakeKafka()
    await expect(attempt(fails, order, { clock, stallAfter: 5 })).rejects.toThrow(
      /stallAfter is 5; the given clock has its own/,
    )
  })

  it('a call from inside a handler on the same clock', async () => {
    const { clock } = createFakeKafka()
    const { thrown } = await attempt(() => attempt(fails, order, { clock }), order, { clock })
    expect(String(thrown)).toContain('the clock cannot be moved from inside a handler')
  })
})
