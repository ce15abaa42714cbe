import { afterEach, describe, expect, it } from 'vitest'
import { createResilientConsumer, RetryableError, type ResilientConsumer } from '../../src'
import { createFakeKafka } from '../../src/testing'
import { stopPromises } from './p9-stop'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P9 on the fake broker', fakeStage, stopPromises)

const nothing = (): void => undefined
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

describe('P9 stops well: no timer is left', () => {
  let kafka: ReturnType<typeof createFakeKafka>
  let consumer: ResilientConsumer
  const topics = { orders: 2, 'orders.retry.1m': 2, 'orders.dlq': 2 }

  async function start(handler: () => unknown, options: Record<string, unknown> = {}): Promise<void> {
    kafka = createFakeKafka({ topics, stallAfter: 200 })
    const base = { kafka, groupId: 'billing', topic: 'orders', schedule: ['1m'], logger, topicSetup: 'warn', handler }
    consumer = createResilientConsumer({ ...base, ...options } as never)
    await consumer.start()
    kafka.produce('orders', { value: 'a' })
    await kafka.clock.advance('1s')
  }

  /** Moves the clock until the stop has ended. */
  async function stop(timeout: string): Promise<unknown> {
    let ended = false
    const stopping = consumer.stop({ timeout: timeout as never }).finally(() => {
      ended = true
    })
    while (!ended) await kafka.clock.advance(100)
    return stopping
  }

  async function expectNothingLeft(): Promise<void> {
    await kafka.clock.settle()
    expect(kafka.clock.busy()).toEqual([])
    expect(kafka.clock.timers()).toBe(0)
    expect(kafka.broker.members('billing')).toEqual([])
    expect(consumer.health().status).toBe('stopped')
  }

  afterEach(async () => {
    await consumer.stop({ timeout: 0 })
  })

  it('when idle', async () => {
    await start(nothing)
    expect(await stop('10s')).toEqual({ abandoned: [], finished: true })
    await expectNothingLeft()
  })

  it('while a retry waits to be due', async () => {
    await start(() => {
      throw new RetryableError('not now')
    })
    expect(kafka.records('orders.retry.1m')).toHaveLength(1)
    expect(await stop('10s')).toEqual({ abandoned: [], finished: true })
    await expectNothingLeft()
  })

  it('while a quick try waits', async () => {
    const failing = (): never => {
      throw new RetryableError('not now')
    }
    await start(failing, { immediate: { tries: 5, delay: '5s' }, handlerTimeout: '1m' })
    expect(await stop('10s')).toMatchObject({ finished: true })
    await expectNothingLeft()
  })

  it('after a handler that never settles', async () => {
    await start(() => kafka.clock.park(new Promise(nothing)))
    expect(await stop('1s')).toMatchObject({ abandoned: [{ topic: 'orders', offset: '0' }], finished: true })
    await expectNothingLeft()
  })

  it('while a copy is refused again and again', async () => {
    const bad = (): never => {
      throw new RetryableError('not now')
    }
    await start(nothing)
    await stop('1s')
    kafka = createFakeKafka({ topics, stallAfter: 200 })
    kafka.broker.every('publish', { topic: 'orders.retry.1m' }).fail('NOT_ENOUGH_REPLICAS')
    consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: ['1m'],
      logger,
      handler: bad,
    })
    await consumer.start()
    kafka.produce('orders', { value: 'a' })
    await kafka.clock.advance('5s')
    expect(consumer.health().status).toBe('degraded')
    expect(await stop('2s')).toMatchObject({ finished: true })
    // kafkajs does not cut short its own wait before another try, which is a second at most.
    await kafka.clock.advance('1s')
    await expectNothingLeft()
    expect(kafka.committed('billing', 'orders').get(0)?.offset ?? 0n).toBe(0n)
  })

  it('while a record is too large even for its dead letter topic', async () => {
    kafka = createFakeKafka({ topics: { orders: 1 }, stallAfter: 200 })
    for (const name of ['orders.retry.1m', 'orders.dlq']) {
      kafka.createTopic(name, { partitions: 1, config: { 'max.message.bytes': '500' } })
    }
    const handler = (): never => {
      throw new RetryableError('not now')
    }
    consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: ['1m'],
      logger,
      handler,
      topicSetup: 'warn',
    })
    await consumer.start()
    kafka.produce('orders', { value: 'x'.repeat(2_000) })
    await kafka.clock.advance('5s')
    expect(consumer.health()).toMatchObject({ status: 'degraded' })
    expect(await stop('2s')).toMatchObject({ finished: true })
    await expectNothingLeft()
  })

  it('after a crash that waits for its restart', async () => {
    await start(nothing)
    kafka.broker.down()
    await kafka.clock.advance('2m')
    expect(consumer.health().groups.map(({ state }) => state)).toContain('crashed')
    const stopping = consumer.stop({ timeout: '1s' })
    await kafka.clock.advance('2m')
    expect(await stopping).toMatchObject({ abandoned: [] })
    kafka.broker.up()
    await kafka.clock.advance('2m')
    await expectNothingLeft()
  })

  it('after a start that was refused', async () => {
    kafka = createFakeKafka({ topics: { orders: 1 } })
    consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: ['1m'],
      logger,
      handler: nothing,
    })
    await expect(consumer.start()).rejects.toMatchObject({ code: 'RETRYLINE_TOPICS' })
    await expectNothingLeft()
  })

  it('after a start against a broker that is not there', async () => {
    kafka = createFakeKafka({ topics })
    kafka.broker.down()
    consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: ['1m'],
      logger,
      handler: nothing,
    })
    const starting = consumer.start().catch((error: unknown) => error)
    await kafka.clock.advance('5m')
    expect(await starting).toMatchObject({ code: 'RETRYLINE_CONNECT' })
    await expectNothingLeft()
  })
})
