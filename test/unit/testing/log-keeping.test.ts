import { describe, expect, it } from 'vitest'
import { createFakeKafka, type FakeKafka } from '../../../src/testing'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const topic = (config: Record<string, string>, options = {}): FakeKafka =>
  createFakeKafka({ startAt: 100 * HOUR, topics: { orders: { partitions: 1, config } }, ...options })

const offsets = (kafka: FakeKafka): number[] => kafka.records('orders').map(({ offset }) => Number(offset))

async function positions(kafka: FakeKafka): Promise<unknown> {
  const admin = kafka.admin()
  await admin.connect()
  const [found] = await admin.fetchTopicOffsets('orders')
  await admin.disconnect()
  return { low: found?.low, high: found?.high }
}

describe('retention', () => {
  it('by time: a segment goes at the first look after all of it is too old', async () => {
    const kafka = topic({ 'retention.ms': String(HOUR), 'segment.ms': String(10 * MINUTE) })
    kafka.produce('orders', { value: '0' })
    await kafka.clock.advance(9 * MINUTE)
    kafka.produce('orders', { value: '1' })
    await kafka.clock.advance(9 * MINUTE)
    kafka.produce('orders', { value: '2' })
    // 0 is too old, but lies in one segment with 1.
    await kafka.clock.advance(45 * MINUTE)
    expect(offsets(kafka)).toEqual([0, 1, 2])
    await kafka.clock.advance(12 * MINUTE)
    expect(offsets(kafka)).toEqual([2])
    expect(await positions(kafka)).toEqual({ low: '2', high: '3' })
    await kafka.clock.advance(HOUR)
    expect(await positions(kafka)).toEqual({ low: '3', high: '3' })
    kafka.produce('orders', { value: '3' })
    expect(offsets(kafka)).toEqual([3])
  })

  it('looks only so often as told, and at once when the test says so', async () => {
    const kafka = topic({ 'retention.ms': '1000' }, { cleanEvery: '1h' })
    kafka.produce('orders', { value: '0' })
    await kafka.clock.advance('10s')
    expect(offsets(kafka)).toEqual([0])
    kafka.broker.clean('orders')
    expect(offsets(kafka)).toEqual([])
    kafka.produce('orders', { value: '1' })
    await kafka.clock.advance('30s')
    expect(offsets(kafka)).toEqual([])
    expect(() => topic({}, { cleanEvery: 0 })).toThrow(/cleanEvery/)
  })

  it('trap 10: a copy that keeps its old time stamp is thrown away at once', async () => {
    const kafka = topic({ 'retention.ms': String(10 * MINUTE) })
    kafka.produce('orders', { value: 'old', timestamp: 99 * HOUR })
    await kafka.clock.advance('30s')
    expect(offsets(kafka)).toEqual([])
  })

  it('an old copy lives as long as a new record in its segment, and always where the log writes its own time', async () => {
    for (const config of [{}, { 'message.timestamp.type': 'LogAppendTime' }]) {
      const kafka = topic({ 'retention.ms': String(10 * MINUTE), ...config })
      kafka.produce('orders', { value: 'old', timestamp: 100 * HOUR - 11 * MINUTE })
      if (!('message.timestamp.type' in config)) kafka.produce('orders', { value: 'new' })
      await kafka.clock.advance('9m')
      expect(offsets(kafka)).toContain(0)
      await kafka.clock.advance('10m')
      expect(offsets(kafka)).toEqual([])
    }
  })

  it('by size: the oldest segments go, never below what is to be kept', async () => {
    const kafka = topic({ 'retention.bytes': '1000', 'segment.bytes': '500', 'retention.ms': '-1' })
    for (let i = 0; i < 20; i++) kafka.produce('orders', { value: 'x'.repeat(100) })
    expect(offsets(kafka)).toHaveLength(20)
    await kafka.clock.advance('30s')
    // Records of 172 bytes, two of them to a segment: three segments are 1,032 bytes, two would be too little.
    expect(offsets(kafka)).toEqual([14, 15, 16, 17, 18, 19])
  })

  it('follows a change of settings from then on', async () => {
    const kafka = topic({ 'retention.ms': '-1' })
    kafka.produce('orders', { value: 'x', timestamp: 0 })
    await kafka.clock.advance('1h')
    expect(offsets(kafka)).toEqual([0])
    const admin = kafka.admin()
    await admin.connect()
    const configEntries = [{ name: 'retention.ms', value: '1000' }]
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: 'orders', configEntries }] })
    expect(offsets(kafka)).toEqual([0])
    await kafka.clock.advance('5m')
    expect(offsets(kafka)).toEqual([])
  })

  it('under a consumer that lags: kafkajs commits -2 and goes on at the start of the log', async () => {
    const kafka = topic({ 'retention.ms': '1000' })
    const consumer = kafka.consumer({ groupId: 'billing' })
    const seen: string[] = []
    await consumer.connect()
    await consumer.subscribe({ topic: 'orders', fromBeginning: true })
    await consumer.run({ eachMessage: async ({ message }) => void seen.push(String(message.value)) })
    consumer.pause([{ topic: 'orders' }])
    kafka.produce('orders', { value: 'gone' })
    await kafka.clock.advance('5m')
    kafka.produce('orders', { value: 'here' })
    consumer.resume([{ topic: 'orders' }])
    await kafka.clock.settle()
    expect(seen).toEqual(['here'])
    expect(kafka.commits('billing').map(({ offset }) => offset)).toEqual([-2n, 2n])
    await consumer.disconnect()
  })
})

describe('compaction', () => {
  const compacted = { 'cleanup.policy': 'compact', 'segment.ms': '1000', 'min.cleanable.dirty.ratio': '0.1' }
  const write = (kafka: FakeKafka, key: string, value: string | null) => kafka.produce('orders', { key, value })

  it('keeps the last of each key, and the last segment as it is; offsets keep their gaps', async () => {
    const kafka = topic(compacted)
    for (const key of ['a', 'b', 'a', 'a']) write(kafka, key, 'x')
    await kafka.clock.advance('2s')
    for (const key of ['b', 'b']) write(kafka, key, 'y')
    await kafka.clock.advance('1m')
    expect(offsets(kafka)).toEqual([1, 3, 4, 5])
    const consumer = kafka.consumer({ groupId: 'g' })
    const seen: string[] = []
    await consumer.connect()
    await consumer.subscribe({ topic: 'orders', fromBeginning: true })
    await consumer.run({ eachMessage: async ({ message }) => void seen.push(message.offset) })
    await kafka.clock.settle()
    expect(seen).toEqual(['1', '3', '4', '5'])
    expect(await positions(kafka)).toEqual({ low: '0', high: '6' })
    await consumer.disconnect()
  })

  it('waits until enough is new, and until it is old enough', async () => {
    for (const config of [{ 'min.cleanable.dirty.ratio': '0.9' }, { 'min.compaction.lag.ms': String(HOUR) }]) {
      const kafka = topic({ ...compacted })
      for (const key of ['a', 'b', 'c', 'd', 'e']) write(kafka, key, 'x')
      await kafka.clock.advance('2s')
      write(kafka, 'z', 'x')
      await kafka.clock.advance('5m')
      const admin = kafka.admin()
      await admin.connect()
      const configEntries = Object.entries({ ...compacted, ...config }).map(([name, value]) => ({ name, value }))
      await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: 'orders', configEntries }] })
      write(kafka, 'a', 'y')
      await kafka.clock.advance('2s')
      write(kafka, 'z', 'y')
      await kafka.clock.advance('10m')
      expect(offsets(kafka)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
      if ('min.compaction.lag.ms' in config) {
        await kafka.clock.advance('1h')
        expect(offsets(kafka)).toEqual([1, 2, 3, 4, 5, 6, 7])
      }
    }
  })

  it('a tombstone goes with a compaction that comes long enough after the first', async () => {
    const kafka = topic({ ...compacted, 'delete.retention.ms': String(HOUR) })
    write(kafka, 'a', 'x')
    write(kafka, 'a', null)
    const roll = async (): Promise<void> => {
      await kafka.clock.advance('2s')
      write(kafka, 'filler', 'x')
      await kafka.clock.advance('2s')
      write(kafka, 'filler', 'x')
      await kafka.clock.advance('5m')
    }
    await roll()
    expect(kafka.records('orders')[0]).toMatchObject({ offset: 1n, value: null })
    await roll()
    expect(kafka.records('orders')[0]).toMatchObject({ offset: 1n })
    await kafka.clock.advance('1h')
    await roll()
    expect(kafka.records('orders').map(({ key }) => String(key))).not.toContain('a')
  })

  it('compact,delete does both; at once, and in the last segment too, when the test says so', async () => {
    const kafka = topic({ 'cleanup.policy': 'compact,delete', 'retention.ms': String(HOUR), 'segment.ms': '1000' })
    write(kafka, 'old', 'x')
    await kafka.clock.advance('2h')
    for (const key of ['a', 'b', 'a']) write(kafka, key, 'x')
    kafka.broker.clean('orders', 0)
    expect(offsets(kafka)).toEqual([2, 3])
    expect(await positions(kafka)).toEqual({ low: '1', high: '4' })
  })

  it('stops at a transaction that is open', async () => {
    const kafka = topic(compacted)
    const producer = kafka.producer({ transactionalId: 't', idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    const transaction = await producer.transaction()
    write(kafka, 'a', '0')
    write(kafka, 'a', '1')
    await transaction.send({ topic: 'orders', messages: [{ key: 'a', value: '2' }] })
    write(kafka, 'a', '3')
    kafka.broker.clean('orders')
    expect(kafka.records('orders', 0, { uncommitted: true }).map(({ offset }) => Number(offset))).toEqual([1, 2, 3])
    await transaction.commit()
    kafka.broker.clean('orders')
    expect(kafka.records('orders').map(({ offset }) => Number(offset))).toEqual([3])
    await producer.disconnect()
  })
})

describe('time stamps', () => {
  it('are refused where they are too far from now', async () => {
    const kafka = topic({ 'message.timestamp.before.max.ms': String(HOUR) })
    const producer = kafka.producer()
    await producer.connect()
    const send = (timestamp: number) =>
      producer.send({ topic: 'orders', messages: [{ value: 'x', timestamp: String(timestamp) }] })
    await send(99 * HOUR)
    await send(101 * HOUR)
    for (const far of [99 * HOUR - 1, 101 * HOUR + 1]) {
      await expect(send(far)).rejects.toMatchObject({ type: 'INVALID_TIMESTAMP' })
    }
    await producer.disconnect()
  })
})
