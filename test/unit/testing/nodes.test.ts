import { describe, expect, it } from 'vitest'
import { createFakeKafka, type FakeKafka } from '../../../src/testing'

const three = (): FakeKafka =>
  createFakeKafka({ brokers: 3, topics: { orders: 3, single: { partitions: 3, replicationFactor: 1 } } })

async function consuming(kafka: FakeKafka, config = {}) {
  const consumer = kafka.client().consumer({ groupId: 'billing', ...config })
  const seen: string[] = []
  const events: string[] = []
  const crashes: unknown[] = []
  for (const name of [consumer.events.GROUP_JOIN, consumer.events.REBALANCING]) {
    consumer.on(name, () => void events.push(name))
  }
  consumer.on(consumer.events.CRASH, ({ payload }) => void crashes.push(payload))
  await consumer.connect()
  await consumer.subscribe({ topic: 'orders', fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => void seen.push(String(message.value)) })
  await kafka.clock.settle()
  return { consumer, seen, events, crashes }
}

async function producing(kafka: FakeKafka, retries = 5) {
  const producer = kafka.producer({ retry: { retries } })
  await producer.connect()
  const send = (partition: number, topic = 'orders') =>
    producer.send({ topic, messages: [{ value: `${topic}/${partition}`, partition }] })
  return { producer, send }
}

describe('nodes', () => {
  it('lead partitions in turn; a fault can be about one of them', async () => {
    const kafka = three()
    expect([0, 1, 2].map((partition) => kafka.broker.nodeOf({ topic: 'orders', partition }))).toEqual([1, 2, 3])
    const { send } = await producing(kafka, 0)
    const standing = kafka.broker.every('publish', { node: 2 }).fail('NOT_ENOUGH_REPLICAS')
    await send(0)
    await send(2)
    await expect(send(1)).rejects.toMatchObject({ cause: { type: 'NOT_ENOUGH_REPLICAS' } })
    standing.stop()
    await send(1)
    expect(() => kafka.broker.down(4)).toThrow(/there is no node 4; nodes: 1, 2, 3/)
    expect(() => kafka.broker.moveLeader('single', 0, 2)).toThrow(/replicas in sync are on 1/)
    expect(() => createFakeKafka({ brokers: 0 })).toThrow(/brokers: 0/)
  })

  it('go and come: another leads, fewer are in sync, and what has one replica has no leader', async () => {
    const kafka = createFakeKafka({
      brokers: 3,
      topics: {
        orders: { partitions: 3, config: { 'min.insync.replicas': '3' } },
        single: { partitions: 3, replicationFactor: 1 },
      },
    })
    const { consumer, seen, crashes } = await consuming(kafka)
    const victim = [1, 2, 3].find((node) => node !== kafka.broker.nodeOf({ group: 'billing' })) ?? 0
    const partition = victim - 1
    kafka.broker.down(victim)
    expect(kafka.broker.nodeOf({ topic: 'single', partition })).toBe(-1)
    expect(kafka.broker.nodeOf({ topic: 'orders', partition })).not.toBe(victim)
    const { send } = await producing(kafka, 0)
    await expect(send(partition)).rejects.toMatchObject({ cause: { type: 'NOT_ENOUGH_REPLICAS' } })
    kafka.broker.up(victim)
    expect(kafka.broker.nodeOf({ topic: 'single', partition })).toBe(victim)
    await send(partition)
    await kafka.clock.advance('1m')
    expect(seen).toEqual([`orders/${partition}`])
    expect(crashes).toEqual([])
    await consumer.disconnect()
  })

  it('coordinate groups: members of a group that moves join again, with their ids, offsets and generation', async () => {
    const kafka = three()
    const { consumer, events, seen } = await consuming(kafka)
    const [before] = kafka.broker.members('billing')
    const node = kafka.broker.nodeOf({ group: 'billing' })
    kafka.broker.moveCoordinator('billing', (node % 3) + 1)
    await kafka.clock.settle()
    kafka.produce('orders', { value: 'x' })
    await kafka.clock.settle()
    expect(events).toEqual(['consumer.group_join', 'consumer.rebalancing', 'consumer.group_join'])
    expect(kafka.broker.members('billing')).toEqual([before])
    expect(seen).toEqual(['x'])
    await consumer.disconnect()
  })

  it('a coordinator that goes down: the member comes back at the next, with the offsets it had committed', async () => {
    const kafka = three()
    const { consumer, seen } = await consuming(kafka, { sessionTimeout: 10_000 })
    kafka.produce('orders', { value: 'x', partition: 0 })
    await kafka.clock.settle()
    kafka.broker.down(kafka.broker.nodeOf({ group: 'billing' }))
    kafka.produce('orders', { value: 'y', partition: 0 })
    await kafka.clock.advance('2m')
    expect(seen).toEqual(['x', 'y'])
    expect(kafka.broker.members('billing')).toHaveLength(1)
    await consumer.disconnect()
  })

  it('a fetcher without partitions heartbeats, whatever a handler does', async () => {
    for (const [brokers, members] of [
      [1, 0],
      [3, 1],
    ]) {
      const kafka = createFakeKafka({ brokers: brokers ?? 1, topics: { orders: 1 } })
      const consumer = kafka.consumer({ groupId: 'billing', sessionTimeout: 10_000 })
      await consumer.connect()
      await consumer.subscribe({ topic: 'orders', fromBeginning: true })
      let calls = 0
      await consumer.run({ eachMessage: async () => (calls++ === 0 ? kafka.clock.sleep('1m') : undefined) })
      kafka.produce('orders', { value: 'slow' })
      await kafka.clock.advance('30s')
      expect(kafka.broker.members('billing')).toHaveLength(members ?? -1)
      await kafka.clock.advance('1m')
      await consumer.disconnect()
    }
  })

  it('a poll at another node does not keep the session of a member whose only worker is busy', async () => {
    const kafka = createFakeKafka({ brokers: 2, topics: { orders: 2 } })
    const consumer = kafka.consumer({ groupId: 'billing', sessionTimeout: 10_000, maxWaitTimeInMs: 1000 })
    await consumer.connect()
    await consumer.subscribe({ topic: 'orders', fromBeginning: true })
    let calls = 0
    await consumer.run({ eachMessage: async () => (calls++ === 0 ? kafka.clock.sleep('1m') : undefined) })
    kafka.produce('orders', { value: 'slow', partition: 1 })
    await kafka.clock.advance('10s')
    expect(kafka.broker.members('billing')).toHaveLength(1)
    await kafka.clock.advance('2s')
    expect(kafka.broker.members('billing')).toHaveLength(0)
    await kafka.clock.advance('1m')
    await consumer.disconnect()
  })
})

describe('what is refused', () => {
  it('a full disk: tried again as long as kafkajs tries', async () => {
    const kafka = three()
    const { send } = await producing(kafka)
    const full = kafka.broker.fullDisk(2)
    await send(0)
    const failing = send(1).catch((e: unknown) => e)
    await kafka.clock.advance('30s')
    expect(await failing).toMatchObject({
      name: 'KafkaJSNumberOfRetriesExceeded',
      message: 'Disk error when trying to access log file on the disk',
    })
    const later = send(1)
    full.stop()
    await kafka.clock.advance('1s')
    await later
  })

  it('denied: to write, to look, to use a group', async () => {
    const kafka = three()
    const { send } = await producing(kafka)
    await send(0)
    const write = kafka.broker.deny({ topic: 'orders', to: 'write' })
    await expect(send(0)).rejects.toMatchObject({ type: 'TOPIC_AUTHORIZATION_FAILED' })
    write.stop()
    const all = kafka.broker.deny({ topic: 'single' })
    await expect(send(0, 'single')).rejects.toMatchObject({ cause: { type: 'TOPIC_AUTHORIZATION_FAILED' } })
    all.stop()
    kafka.broker.deny({ group: 'billing' })
    const { crashes } = await consuming(kafka)
    await kafka.clock.advance('1m')
    // kafkajs does not hear why no node tells the coordinator, and so starts again and again.
    expect(crashes[0]).toMatchObject({ restart: true, error: { name: 'KafkaJSGroupCoordinatorNotFound' } })
  })

  it('too large a record, and a partition that is no more', async () => {
    const kafka = createFakeKafka({ topics: { orders: { partitions: 2, config: { 'max.message.bytes': '200' } } } })
    const { producer, send } = await producing(kafka, 0)
    const messages = [{ value: 'x'.repeat(300), partition: 0 }]
    await expect(producer.send({ topic: 'orders', messages })).rejects.toMatchObject({ type: 'MESSAGE_TOO_LARGE' })
    await send(1)
    kafka.broker.deleteTopic('orders')
    await expect(send(1)).rejects.toMatchObject({ cause: { type: 'UNKNOWN_TOPIC_OR_PARTITION' } })
    kafka.createTopic('orders', { partitions: 1 })
    await kafka.clock.advance('10m')
    expect(await send(1)).toEqual([])
  })

  it('nobody leads: refused until somebody does', async () => {
    const kafka = three()
    const { send } = await producing(kafka)
    await send(0)
    kafka.broker.loseLeader('orders', 0)
    const waiting = send(0)
    await kafka.clock.advance('500ms')
    kafka.broker.moveLeader('orders', 0, 2)
    await kafka.clock.advance('10s')
    await waiting
    expect(kafka.records('orders', 0)).toHaveLength(2)
  })
})
