import { describe, expect, it } from 'vitest'
import { createFakeKafka, type FakeKafka } from '../../../src/testing'

const ONCE = { retry: { retries: 0 } }

async function producing(kafka: FakeKafka, config: Parameters<FakeKafka['producer']>[0] = ONCE) {
  const producer = kafka.producer(config)
  await producer.connect()
  const send = (topic = 'orders', value = 'x') => producer.send({ topic, messages: [{ value, partition: 0 }] })
  return { producer, send }
}

async function consuming(kafka: FakeKafka, groupId = 'billing', config: object = {}) {
  const consumer = kafka.client().consumer({ groupId, ...config })
  const seen: string[] = []
  const events: string[] = []
  for (const name of Object.values(consumer.events)) consumer.on(name, () => events.push(name))
  const state: { payload?: any; join?: any; crash?: any } = {}
  consumer.on(consumer.events.GROUP_JOIN, (event: any) => (state.join = event.payload))
  consumer.on(consumer.events.CRASH, (event: any) => (state.crash = event.payload))
  await consumer.connect()
  await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
  const running = consumer.run({
    autoCommit: false,
    eachBatch: async (payload) => {
      state.payload = payload
      for (const { offset, value } of payload.batch.messages) seen.push(`${offset}:${value?.toString()}`)
    },
  })
  return { consumer, seen, events, state, running }
}

const commitOf = (payload: any, offset: string, partition = 0) =>
  payload.commitOffsetsIfNecessary({ topics: [{ topic: 'orders', partitions: [{ partition, offset }] }] })

const fake = (partitions = 1) => createFakeKafka({ topics: { orders: partitions, copies: 1 }, stallAfter: 300 })

describe('next(...).fail', () => {
  it('refuses the next request that fits, once, and stores nothing', async () => {
    const kafka = fake()
    const { send } = await producing(kafka)
    kafka.broker.next('publish', { topic: 'orders' }).fail('NOT_ENOUGH_REPLICAS')
    await send('copies')
    await expect(send()).rejects.toMatchObject({
      name: 'KafkaJSNumberOfRetriesExceeded',
      cause: { name: 'KafkaJSProtocolError', type: 'NOT_ENOUGH_REPLICAS', code: 19, retriable: true },
    })
    expect(kafka.records('orders')).toEqual([])
    await send()
    expect(kafka.records('orders')).toHaveLength(1)
  })

  it("lets kafkajs's retrier try again, on the virtual clock", async () => {
    const kafka = fake()
    const { send } = await producing(kafka, {})
    kafka.broker.next('publish').fail('NOT_ENOUGH_REPLICAS')
    const sending = send()
    await kafka.clock.advance(299)
    expect(kafka.records('orders')).toEqual([])
    await kafka.clock.advance(1)
    expect(await sending).toMatchObject([{ topicName: 'orders', partition: 0, errorCode: 0 }])
  })

  it('refuses only its own partitions of a request; the rest is stored, and stored again at the next try', async () => {
    const kafka = fake()
    const { producer } = await producing(kafka, { retry: { retries: 1 } })
    kafka.broker.next('publish', { topic: 'copies' }).fail('NOT_ENOUGH_REPLICAS')
    const topicMessages = ['orders', 'copies'].map((topic) => ({ topic, messages: [{ value: 'x' }] }))
    const sending = producer.sendBatch({ topicMessages })
    await kafka.clock.settle()
    expect([kafka.records('orders').length, kafka.records('copies').length]).toEqual([1, 0])
    await kafka.clock.advance('1s')
    await sending
    expect([kafka.records('orders').length, kafka.records('copies').length]).toEqual([2, 1])
  })

  it('takes any error, and a broken connection takes the whole request', async () => {
    const kafka = fake()
    const { producer, send } = await producing(kafka)
    kafka.broker.next('publish').fail(Object.assign(new Error('of my own'), { retriable: false }))
    await expect(send()).rejects.toThrow('of my own')
    kafka.broker.next('publish', { topic: 'copies' }).fail('CONNECTION_CLOSED')
    const topicMessages = ['orders', 'copies'].map((topic) => ({ topic, messages: [{ value: 'x' }] }))
    await expect(producer.sendBatch({ topicMessages })).rejects.toThrow('Closed connection')
    expect(kafka.records('orders')).toEqual([])
  })

  it('refuses a type that is none', () => {
    expect(() => kafkaless().fail('NO_SUCH_ERROR' as never)).toThrow(/NO_SUCH_ERROR.*NOT_ENOUGH_REPLICAS/)
    function kafkaless() {
      return fake().broker.next('publish')
    }
  })

  it('every(...) refuses until it is stopped', async () => {
    const kafka = fake()
    const { send } = await producing(kafka)
    const broken = kafka.broker.every('publish').fail('NOT_ENOUGH_REPLICAS')
    for (let i = 0; i < 3; i++) await expect(send()).rejects.toThrow()
    broken.stop()
    await send()
  })

  it('reaches a poll that already stands', async () => {
    const kafka = fake()
    const { consumer, seen, events } = await consuming(kafka)
    await kafka.clock.settle()
    kafka.broker.next('fetch', { topic: 'orders' }).fail('NOT_LEADER_FOR_PARTITION')
    await kafka.clock.settle()
    // kafkajs refreshes its metadata and joins again, without saying that it rebalances.
    expect(events.filter((name) => name === 'consumer.group_join')).toHaveLength(2)
    expect(events).not.toContain('consumer.rebalancing')
    kafka.produce('orders', { value: 'x' })
    await kafka.clock.settle()
    expect(seen).toEqual(['0:x'])
    await consumer.disconnect()
  })

  it('refuses metadata, joins and offsets', async () => {
    const kafka = fake()
    kafka.broker.next('metadata').fail('TOPIC_AUTHORIZATION_FAILED')
    const consumer = kafka.consumer({ groupId: 'billing' })
    await consumer.connect()
    await expect(consumer.subscribe({ topics: ['orders'] })).rejects.toMatchObject({
      type: 'TOPIC_AUTHORIZATION_FAILED',
    })
    kafka.broker.next('join', { group: 'billing' }).fail('GROUP_AUTHORIZATION_FAILED')
    const { state, running } = await consuming(kafka)
    await running
    expect(state.crash).toMatchObject({ restart: false, error: { type: 'GROUP_AUTHORIZATION_FAILED' } })
    const admin = kafka.admin()
    await admin.connect()
    kafka.broker.next('offsets', { group: 'billing', topic: 'orders' }).fail('GROUP_LOAD_IN_PROGRESS')
    await expect(admin.fetchOffsets({ groupId: 'billing', topics: ['orders'] })).rejects.toMatchObject({ code: 14 })
  })
})

describe('next(...).hold', () => {
  it('keeps the request from the broker until released', async () => {
    const kafka = fake()
    const { send } = await producing(kafka)
    const held = kafka.broker.next('publish').hold()
    const sending = send()
    await held.caught
    expect(kafka.records('orders')).toEqual([])
    held.release()
    expect(await sending).toHaveLength(1)
  })

  it('or its answer: the broker has done it', async () => {
    const kafka = fake()
    const { send } = await producing(kafka)
    const held = kafka.broker.next('publish').hold('answer')
    let answered = false
    const sending = send().then(() => (answered = true))
    await held.caught
    await kafka.clock.settle()
    expect([answered, kafka.records('orders').length]).toEqual([false, 1])
    held.release()
    await sending
  })

  it('can end in a refusal', async () => {
    const kafka = fake()
    const { send } = await producing(kafka)
    const held = kafka.broker.next('publish').hold()
    const sending = send()
    await held.caught
    held.fail('NOT_ENOUGH_REPLICAS')
    await expect(sending).rejects.toThrow('fewer in-sync replicas')
  })

  it("is given up after kafkajs's request time-out, and arrives all the same", async () => {
    const kafka = fake()
    const { send } = await producing(kafka)
    const held = kafka.broker.next('publish').hold()
    const sending = send().catch((e: Error) => e)
    await held.caught
    await kafka.clock.advance('30s')
    expect(await sending).toMatchObject({ cause: { name: 'KafkaJSRequestTimeoutError' } })
    held.release()
    await kafka.clock.settle()
    expect(kafka.records('orders')).toHaveLength(1)
  })

  it('does nothing if released before it caught anything', async () => {
    const kafka = fake()
    const { send } = await producing(kafka)
    kafka.broker.next('publish').hold().release()
    await send()
  })

  it('holds back a disconnect, as kafkajs waits for its answers', async () => {
    const kafka = fake()
    const { producer, send } = await producing(kafka)
    const held = kafka.broker.next('publish').hold()
    const sending = send()
    await held.caught
    let disconnected = false
    const leaving = producer.disconnect().then(() => (disconnected = true))
    await kafka.clock.advance('5s')
    expect(disconnected).toBe(false)
    held.release()
    await Promise.all([sending, leaving])
  })
})

describe('next(...).drop', () => {
  it('stores, and loses the answer: a second try stores it twice', async () => {
    const kafka = fake()
    const { send } = await producing(kafka, {})
    kafka.broker.next('publish').drop()
    const sending = send()
    await kafka.clock.advance('1s')
    expect(await sending).toMatchObject([{ baseOffset: '1' }])
    expect(kafka.records('orders')).toHaveLength(2)
  })
})

describe('commits and generations', () => {
  async function twoMembers(kafka: FakeKafka) {
    const first = await consuming(kafka)
    kafka.produce('orders', { value: 'x', partition: 0 })
    kafka.produce('orders', { value: 'y', partition: 1 })
    await kafka.clock.settle()
    return first
  }

  it('a commit of one generation that arrives in the next is refused', async () => {
    const kafka = fake(2)
    const first = await twoMembers(kafka)
    const held = kafka.broker.next('commit').hold()
    const late = commitOf(first.state.payload, '1').catch((e: unknown) => e)
    await held.caught
    const second = await consuming(kafka)
    await kafka.clock.settle()
    expect(kafka.broker.group('billing')).toEqual({ state: 'Stable', generation: 2 })
    held.release()
    expect(await late).toMatchObject({ type: 'ILLEGAL_GENERATION' })
    expect(kafka.commits('billing')).toEqual([])
    await second.running
    await first.consumer.disconnect()
    await second.consumer.disconnect()
  })

  it('consumer.commitOffsets is tried again in the next generation, over the new owner; the payload is not', async () => {
    const kafka = fake(2)
    const first = await twoMembers(kafka)
    kafka.broker.next('commit').fail('CONNECTION_CLOSED')
    kafka.broker.next('commit').fail('CONNECTION_CLOSED')
    const own = first.state.join.memberAssignment.orders as number[]
    const byConsumer = first.consumer.commitOffsets(
      [0, 1].map((partition) => ({ topic: 'orders', partition, offset: '1' })),
    )
    const byPayload = commitOf(first.state.payload, '1').catch((e: unknown) => e)
    expect(own).toEqual([0, 1])
    const second = await consuming(kafka)
    await kafka.clock.settle()
    const [taken] = second.state.join.memberAssignment.orders as [number]
    await commitOf(second.state.payload ?? first.state.payload, '20', taken)
    await kafka.clock.advance('1s')
    await byConsumer
    expect(await byPayload).toMatchObject({ name: 'KafkaJSConnectionClosedError' })
    expect(kafka.committed('billing', 'orders').get(taken)?.offset).toBe(1n)
    expect(kafka.commits('billing').map(({ generationId }) => generationId)).toContain(2)
    await first.consumer.disconnect()
    await second.consumer.disconnect()
  })

  it('does nothing, and says nothing, where the consumer is not running', async () => {
    const kafka = fake()
    const consumer = kafka.consumer({ groupId: 'billing' })
    let atJoin: unknown
    consumer.on(consumer.events.GROUP_JOIN, () => {
      atJoin = consumer.commitOffsets([{ topic: 'orders', partition: 0, offset: '5' }])
    })
    let committed = 0
    consumer.on(consumer.events.COMMIT_OFFSETS, () => committed++)
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'] })
    await consumer.run({ autoCommit: false, eachMessage: async () => undefined })
    expect(await atJoin).toBeUndefined()
    expect([committed, kafka.committed('billing', 'orders').size]).toEqual([0, 0])
    await consumer.disconnect()
  })
})

describe('what happens to a group from outside', () => {
  it('rebalance: every member joins again and keeps its id', async () => {
    const kafka = fake()
    const { consumer, events, state } = await consuming(kafka)
    await kafka.clock.settle()
    const { memberId } = state.join
    kafka.broker.rebalance('billing')
    await kafka.clock.settle()
    expect(events.filter((name) => name === 'consumer.rebalancing')).toHaveLength(1)
    expect(state.join.memberId).toBe(memberId)
    expect(kafka.broker.group('billing').generation).toBe(2)
    await consumer.disconnect()
    expect(kafka.broker.group('billing').state).toBe('Empty')
  })

  it('rebalance while eachBatch runs: it waits for the batch, at most for the rebalance time-out', async () => {
    const kafka = fake(2)
    const consumer = kafka.client().consumer({ groupId: 'billing', rebalanceTimeout: 10_000 })
    let release = (): void => undefined
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
    await consumer.run({ eachBatch: () => kafka.clock.park(new Promise((resolve) => (release = resolve))) })
    kafka.produce('orders', { value: 'x', partition: 0 })
    await kafka.clock.settle()
    const second = await consuming(kafka, 'billing', { rebalanceTimeout: 10_000 })
    await kafka.clock.advance('9s')
    expect(kafka.broker.group('billing')).toEqual({ state: 'PreparingRebalance', generation: 1 })
    await kafka.clock.advance('1s')
    expect(kafka.broker.members('billing')).toHaveLength(1)
    expect(second.state.join.memberAssignment).toEqual({ orders: [0, 1] })
    release()
    await kafka.clock.settle()
    expect(kafka.broker.members('billing')).toHaveLength(2)
    await second.consumer.disconnect()
    // Its batch comes again, from the committed offset, and holds it once more.
    const stopping = consumer.disconnect()
    await kafka.clock.settle()
    release()
    await stopping
  })

  it('crash: dies as kafkajs does, and comes back after its wait with a new id', async () => {
    const kafka = fake()
    const { consumer, seen, state } = await consuming(kafka)
    await kafka.clock.settle()
    const { memberId } = state.join
    consumer.pause([{ topic: 'orders' }])
    kafka.broker.crash('billing')
    await kafka.clock.settle()
    expect(state.crash).toMatchObject({ restart: true, error: { name: 'KafkaJSNumberOfRetriesExceeded' } })
    expect(kafka.broker.members('billing')).toEqual([])
    kafka.produce('orders', { value: 'x' })
    await kafka.clock.advance(300)
    expect(state.join.memberId).not.toBe(memberId)
    // The pause did not live through the crash.
    expect(seen).toEqual(['0:x'])
    kafka.broker.crash(state.join.memberId as string, new TypeError('for good'))
    await kafka.clock.advance('1h')
    expect(state.crash).toMatchObject({ restart: false, error: { message: 'for good' } })
    expect(() => kafka.broker.crash('nobody')).toThrow(/nobody/)
    await consumer.connect()
    await consumer.run({ eachMessage: async () => undefined })
    await kafka.clock.settle()
    expect(kafka.broker.members('billing')).toHaveLength(1)
    await consumer.disconnect()
  })

  it('expireSession: the member is unknown, and joins under a new id without saying that it rebalances', async () => {
    const kafka = fake()
    const { consumer, events, state } = await consuming(kafka)
    await kafka.clock.settle()
    const { memberId } = state.join
    kafka.broker.expireSession(memberId as string)
    await kafka.clock.settle()
    expect(state.join.memberId).not.toBe(memberId)
    expect(events).not.toContain('consumer.rebalancing')
    expect(() => kafka.broker.expireSession('nobody')).toThrow(/nobody/)
    await consumer.disconnect()
  })

  it('a pause survives a rebalance, also while its partition is away', async () => {
    const kafka = fake(2)
    const first = await consuming(kafka)
    await kafka.clock.settle()
    first.consumer.pause([{ topic: 'orders', partitions: [0, 1] }])
    const second = await consuming(kafka)
    await kafka.clock.settle()
    expect(first.consumer.paused()[0]?.partitions).toHaveLength(1)
    await second.consumer.disconnect()
    await kafka.clock.settle()
    expect(first.consumer.paused()).toEqual([{ topic: 'orders', partitions: [0, 1] }])
    await first.consumer.disconnect()
  })

  it('down and up: connections break, new ones are refused, and the consumer comes back by itself', async () => {
    const kafka = fake()
    const { consumer, seen, state } = await consuming(kafka, 'billing', {
      sessionTimeout: 6000,
      rebalanceTimeout: 6000,
    })
    const { send } = await producing(kafka)
    await kafka.clock.settle()
    kafka.broker.down()
    const failing = send().catch((e: Error) => e)
    await kafka.clock.advance('12s')
    expect(state.crash).toMatchObject({ restart: true, error: { name: 'KafkaJSNonRetriableError' } })
    await kafka.clock.advance('8s')
    expect(await failing).toMatchObject({ message: expect.stringContaining('ECONNREFUSED') })
    kafka.broker.up()
    await kafka.clock.advance('30s')
    await send()
    await kafka.clock.settle()
    expect(seen).toEqual(['0:x'])
    await consumer.disconnect()
  })
})
