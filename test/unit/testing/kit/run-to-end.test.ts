import { describe, expect, it, onTestFinished } from 'vitest'
import {
  createResilientConsumer,
  RetryableError,
  silentLogger,
  type Handler,
  type ResilientConsumerOptions,
} from '../../../../src/index'
import { createFakeKafka, record, runToEnd, type FakeKafka, type FakeKafkaOptions } from '../../../../src/testing'

const down = new RetryableError('the bank is down')
const MINUTE = 60_000

function fake(options: FakeKafkaOptions = {}): FakeKafka {
  return createFakeKafka({ topics: { orders: 3, copies: 1 }, stallAfter: 100, ...options })
}

async function resilient(kafka: FakeKafka, handler: Handler, options: Partial<ResilientConsumerOptions> = {}) {
  const consumer = createResilientConsumer({
    kafka,
    groupId: 'billing',
    topic: 'orders',
    schedule: ['1m', '10m', '1h'],
    topicSetup: 'create',
    logger: silentLogger,
    handler,
    ...options,
  })
  await consumer.start()
  onTestFinished(() => {
    void consumer.stop()
    return kafka.clock.advance('1m').catch(() => undefined)
  })
  return consumer
}

type Run = Parameters<ReturnType<FakeKafka['consumer']>['run']>[0]

async function plain(kafka: FakeKafka, run: Run, groupId = 'plain', fromBeginning = true) {
  const consumer = kafka.consumer({ groupId })
  await consumer.connect()
  await consumer.subscribe({ topics: ['orders'], fromBeginning })
  await consumer.run(run)
  onTestFinished(() => {
    void consumer.disconnect()
    return kafka.clock.advance('1m').catch(() => undefined)
  })
  return consumer
}

const produce = (kafka: FakeKafka, count: number): void => {
  for (let i = 0; i < count; i++) kafka.produce('orders', record({ value: { i }, partition: i % 3 }))
}

describe('runToEnd with consumers of retryline', () => {
  it('goes through all tiers, and tells what happened', async () => {
    const kafka = fake()
    const calls: number[] = []
    await resilient(kafka, (_, { attempt }) => {
      calls.push(attempt)
      throw down
    })
    produce(kafka, 6)
    const began = kafka.clock.now()
    const report = await runToEnd(kafka)
    expect(calls).toHaveLength(24)
    expect(report.elapsedMs).toBe(kafka.clock.now() - began)
    // The commit of the last attempt comes a little later than that.
    expect(report.elapsedMs).toBeGreaterThanOrEqual(71 * MINUTE)
    expect(report.elapsedMs).toBeLessThanOrEqual(71 * MINUTE + 1000)
    expect(report.handled).toBe(24)
    expect(report.groups).toEqual([
      { groupId: 'billing', topic: 'orders', handled: 6 },
      ...['1m', '10m', '1h'].map((tier) => ({
        groupId: `billing.retry.${tier}`,
        topic: `orders.retry.${tier}`,
        handled: 6,
      })),
    ])
    expect(report.retried).toHaveLength(18)
    expect(report.deadLettered.map(({ reason }) => reason)).toEqual(Array(6).fill('exhausted'))
    expect(kafka.committed('billing.retry.1h', 'orders.retry.1h').get(0)?.offset).toBe(2n)
  })

  it('takes no time where there is nothing to wait for, and counts only what is new', async () => {
    const kafka = fake()
    await resilient(kafka, () => undefined)
    expect(await runToEnd(kafka)).toEqual({ elapsedMs: 0, handled: 0, groups: [], retried: [], deadLettered: [] })
    produce(kafka, 2)
    expect(await runToEnd(kafka)).toMatchObject({ handled: 2, retried: [], deadLettered: [] })
    produce(kafka, 1)
    expect(await runToEnd(kafka)).toMatchObject({ handled: 1 })
    expect(await runToEnd(kafka)).toMatchObject({ elapsedMs: 0, handled: 0 })
  })

  it('waits for a handler that does real work, and for one that waits for the clock', async () => {
    const kafka = fake()
    const done: string[] = []
    await resilient(kafka, async (_, { attempt }) => {
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
      if (attempt === 1) throw down
      await kafka.clock.sleep('20s')
      done.push('slept')
    })
    produce(kafka, 3)
    const { elapsedMs } = await runToEnd(kafka)
    expect(done).toHaveLength(3)
    expect(elapsedMs).toBeGreaterThanOrEqual(80_000)
  })

  it('takes several consumers, and what one sends to another', async () => {
    const kafka = fake()
    await resilient(kafka, ({ message }, ctx) => {
      if (ctx.attempt === 1) throw down
      ctx.send({ topic: 'copies', key: null, value: message.value })
    })
    let copies = 0
    await resilient(
      kafka,
      (_, { attempt }) => {
        if (attempt === 1) throw down
        copies++
      },
      { groupId: 'copying', topic: 'copies', schedule: ['5m'] },
    )
    produce(kafka, 3)
    const { groups } = await runToEnd(kafka)
    expect(copies).toBe(3)
    expect(groups.map(({ groupId, handled }) => [groupId, handled])).toEqual(
      expect.arrayContaining([['billing', 3], ['billing.retry.1m', 3], ['copying', 3], ['copying.retry.5m', 3]]), // prettier-ignore
    )
  })

  it('outlasts a crash that somebody restarts after', async () => {
    const kafka = fake()
    let handled = 0
    await resilient(kafka, () => void handled++)
    kafka.broker.crash('billing')
    produce(kafka, 3)
    await runToEnd(kafka)
    expect(handled).toBeGreaterThanOrEqual(3)
    expect([...kafka.committed('billing', 'orders').values()].map(({ offset }) => offset)).toEqual([1n, 1n, 1n])
  })

  it('outlasts a broker that refuses for a while', async () => {
    const kafka = fake()
    await resilient(kafka, () => Promise.reject(down), { schedule: ['1m'] })
    kafka.broker.next('publish').fail('NOT_ENOUGH_REPLICAS')
    produce(kafka, 1)
    expect((await runToEnd(kafka)).deadLettered).toHaveLength(1)
  })

  it('gets past transaction markers and compacted records', async () => {
    const kafka = fake({ topics: { orders: 1 } })
    await resilient(kafka, () => undefined)
    for (let i = 0; i < 4; i++) kafka.produce('orders', record({ key: String(i), value: '' }))
    kafka.broker.appendMarker('orders', 0)
    kafka.broker.compact('orders', 0, ({ offset }) => offset !== 2n)
    expect(await runToEnd(kafka)).toMatchObject({ handled: 3 })
  })
})

describe('runToEnd never hangs, and names what is stuck', () => {
  const stuckAt = async (kafka: FakeKafka, says: RegExp, options?: object): Promise<void> => {
    const running = runToEnd(kafka, options)
    await expect(running).rejects.toMatchObject({ code: 'RETRYLINE_TESTING' })
    await expect(running).rejects.toThrow(says)
  }

  it('a handler of plain kafkajs that never settles', async () => {
    const kafka = fake()
    await plain(kafka, { eachMessage: () => new Promise(() => undefined) })
    kafka.produce('orders', record({ value: '1', partition: 2 }))
    await stuckAt(kafka, /^runToEnd\(\): time cannot move .*: eachMessage of plain at orders\/2@0\./)
  })

  it('a handler that waits for the test', async () => {
    const kafka = fake()
    let release!: () => void
    const gate = new Promise<void>((resolve) => (release = resolve))
    await resilient(kafka, () => kafka.clock.park(gate), { handlerTimeout: '24h', schedule: [] })
    kafka.produce('orders', record({ value: '1', partition: 1 }))
    await stuckAt(kafka, /orders\/1@0 of billing\n {2}orders\/1@0 \(attempt 1\): the handler waits/, { limit: '1h' })
    release()
    expect(await runToEnd(kafka)).toMatchObject({ handled: 1 })
  })

  it('a consumer that is paused', async () => {
    const kafka = fake()
    const consumer = await resilient(kafka, () => undefined)
    consumer.pause()
    kafka.produce('orders', record({ value: '1', partition: 1 }))
    await stuckAt(
      kafka,
      /the end does not come: no timer is left, .*\n {2}orders\/1@0 of billing\nIs a consumer paused/s,
    )
    consumer.resume()
    expect(await runToEnd(kafka)).toMatchObject({ handled: 1 })
  })

  it('a partition of plain kafkajs that is paused', async () => {
    const kafka = fake()
    const consumer = await plain(kafka, { eachMessage: async () => undefined })
    await runToEnd(kafka)
    consumer.pause([{ topic: 'orders', partitions: [2] }])
    produce(kafka, 3)
    await stuckAt(kafka, /handled:\n {2}orders\/2@0 of plain: the partition is paused\n/)
    consumer.resume([{ topic: 'orders', partitions: [2] }])
    expect(await runToEnd(kafka)).toMatchObject({ handled: 1 })
  })

  it('a request that is held', async () => {
    const kafka = fake()
    await resilient(kafka, () => Promise.reject(down))
    const held = kafka.broker.next('commit').hold()
    kafka.produce('orders', record({ value: '1', partition: 0 }))
    // The client gives a held request up after a while, and commits again: that is the end of it.
    expect((await runToEnd(kafka)).deadLettered).toHaveLength(1)
    held.release()
  })

  it('a broker that refuses for ever', async () => {
    const kafka = fake()
    await resilient(kafka, () => Promise.reject(down))
    const refusing = kafka.broker.every('publish', { topic: 'orders.retry.1m' }).fail('NOT_ENOUGH_REPLICAS')
    kafka.produce('orders', record({ value: '1', partition: 1 }))
    await stuckAt(kafka, /the end does not come: 2000 timers have fired and changed nothing, .*orders\/1@0 of billing/s)
    refusing.stop()
    await runToEnd(kafka)
  })

  it('a handler of plain kafkajs that always throws', async () => {
    const kafka = fake()
    await plain(kafka, { eachMessage: () => Promise.reject(new Error('always')) })
    kafka.produce('orders', record({ value: '1', partition: 1 }))
    await stuckAt(kafka, /orders\/1@0 of plain/)
  })

  it('a consumer that has died for good', async () => {
    const kafka = fake()
    await plain(kafka, { eachMessage: async () => undefined })
    await runToEnd(kafka)
    produce(kafka, 1)
    kafka.broker.crash('plain', new Error('out of memory'))
    await stuckAt(kafka, /orders\/0@0 of plain: the group has no member: its consumer died of Error: out of memory/)
  })

  it('a consumer that leaves while we run', async () => {
    const kafka = fake()
    const consumer = await resilient(kafka, () => Promise.reject(down))
    produce(kafka, 1)
    kafka.clock.after(30_000, () => void consumer.stop())
    await expect(runToEnd(kafka)).rejects.toThrow(
      /orders\.retry\.1m\/\d@0 of billing\.retry\.1m: the group has no member/,
    )
  })

  it('a limit that comes before the end', async () => {
    const kafka = fake()
    await resilient(kafka, () => Promise.reject(down))
    kafka.produce('orders', record({ value: '1', partition: 1 }))
    await stuckAt(kafka, /beyond the limit, .*orders\.retry\.1h\/\d@0 of billing\.retry\.1h/s, { limit: '20m' })
    expect((await runToEnd(kafka)).deadLettered).toHaveLength(1)
  })

  it('no consumer at all', async () => {
    await stuckAt(fake(), /^runToEnd\(\): no consumer runs on this broker: start it before$/)
  })

  it('a call from inside a handler', async () => {
    const kafka = fake()
    const seen: unknown[] = []
    await resilient(kafka, async () => {
      await runToEnd(kafka).catch((error: unknown) => seen.push(error))
    })
    produce(kafka, 1)
    await runToEnd(kafka)
    expect(String(seen[0])).toMatch(/runToEnd\(\): the clock cannot be moved from inside a handler \(orders\/0@0/)
  })

  it.each<[unknown, RegExp]>([
    [{ limt: '1h' }, /there is no option 'limt'; there is only limit/],
    [{ limit: 'soon' }, /'soon' is not a duration/],
    [null, /null is no options; give \{ limit/],
  ])('options that are none: %j', async (options, says) => {
    await stuckAt(fake(), says, options as object)
  })
})

describe('runToEnd with plain kafkajs consumers', () => {
  it('ends when all is read, whatever is committed', async () => {
    const runs: [string, Run][] = [
      ['each', { eachMessage: async () => undefined }],
      ['seldom', { eachMessage: async () => undefined, autoCommitInterval: 60_000 }],
      ['never', { autoCommit: false, eachMessage: async () => undefined }],
      ['batch', { eachBatch: async () => undefined }],
    ]
    for (const [groupId, run] of runs) {
      const kafka = fake()
      produce(kafka, 6)
      await plain(kafka, run, groupId)
      expect(await runToEnd(kafka), groupId).toMatchObject({ elapsedMs: 0, groups: [] })
      produce(kafka, 6)
      expect(await runToEnd(kafka), groupId).toMatchObject({
        handled: 6,
        groups: [{ groupId, topic: 'orders', handled: 6 }],
      })
    }
  })

  it('waits for the waits between the tries of a handler that throws', async () => {
    const kafka = fake()
    let calls = 0
    await plain(kafka, {
      eachMessage: async () => {
        if (++calls < 3) throw new Error('not yet')
      },
    })
    produce(kafka, 1)
    const { elapsedMs } = await runToEnd(kafka)
    expect(calls).toBe(3)
    expect(elapsedMs).toBeGreaterThan(0)
  })

  it('leaves what came before a consumer that begins at the end', async () => {
    const kafka = fake()
    produce(kafka, 3)
    await plain(kafka, { eachMessage: async () => undefined }, 'late', false)
    expect(await runToEnd(kafka)).toMatchObject({ handled: 0 })
    produce(kafka, 3)
    expect(await runToEnd(kafka)).toMatchObject({ handled: 3 })
  })

  it('ends with slow polls too', async () => {
    const kafka = fake({ slowPolls: true })
    const handled: number[] = []
    await plain(kafka, { eachMessage: async () => void handled.push(kafka.clock.monotonic()) })
    produce(kafka, 3)
    await runToEnd(kafka)
    expect(handled).toHaveLength(3)
  })
})
