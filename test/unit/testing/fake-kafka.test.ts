import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createFakeKafka } from '../../../src/testing'

const text = (bytes: Buffer | null | undefined) => bytes?.toString()

describe('kafka.produce and kafka.records', () => {
  it('write and read what any producer could', () => {
    const kafka = createFakeKafka({ topics: { orders: 2 }, startAt: 1000 })
    const headers = [
      ['a', null],
      ['a', 'again'],
      ['constructor', Buffer.from([0, 255])],
      ['__proto__', ''],
    ] as const
    expect(kafka.produce('orders', { key: 'k', value: null, headers, partition: 1 })).toEqual({
      partition: 1,
      offset: 0n,
    })
    kafka.produce('orders', { value: 'x', headers: { h: ['1', null], n: 'm' }, timestamp: 5, partition: 1 })
    const [first, second] = kafka.records('orders')
    expect(first).toMatchObject({ partition: 1, offset: 0n, timestamp: 1000, value: null })
    expect(text(first?.key)).toBe('k')
    expect(first?.headers.map(([name, value]) => [name, value?.toString('latin1') ?? null])).toEqual([
      ['a', null],
      ['a', 'again'],
      ['constructor', '\u0000ÿ'],
      ['__proto__', ''],
    ])
    expect(second).toMatchObject({ offset: 1n, timestamp: 5, key: null })
    expect(second?.headers.map(([name, value]) => [name, text(value)])).toEqual([
      ['h', '1'],
      ['h', undefined],
      ['n', 'm'],
    ])
    expect(kafka.records('orders', 0)).toEqual([])
  })

  it('keep the log from whoever holds its bytes', async () => {
    const kafka = createFakeKafka({ topics: { orders: 1 } })
    const value = Buffer.from('before')
    kafka.produce('orders', { value, headers: { h: value } })
    value.write('AFTER ')
    kafka.records('orders')[0]?.value?.write('xxxxxx')
    const consumer = kafka.consumer({ groupId: 'g' })
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ message }) => {
        message.value?.write('yyyyyy')
        ;(message.headers.h as Buffer).write('zzzzzz')
      },
    })
    await kafka.clock.settle()
    const [record] = kafka.records('orders')
    expect([text(record?.value), text(record?.headers[0]?.[1])]).toEqual(['before', 'before'])
    await consumer.disconnect()
  })

  it('place by key as kafkajs does, else round robin', () => {
    const kafka = createFakeKafka({ topics: { orders: 3 } })
    expect(['a', 'a', 'b'].map((key) => kafka.produce('orders', { key }).partition)).toEqual([1, 1, 2])
    expect([1, 2, 3, 4].map(() => kafka.produce('orders', {}).partition)).toEqual([0, 1, 2, 0])
  })

  it('say which topics there are when one is not', () => {
    const kafka = createFakeKafka({ topics: { orders: 3 } })
    expect(() => kafka.records('order')).toThrow(/there is no order .*orders \(3\)/)
    expect(() => kafka.produce('orders', { partition: 3 })).toThrow(/there is no orders\/3/)
    expect(() => kafka.committed('g', 'order')).toThrow(/no order/)
  })
})

describe('a consumer reads headers with the quirks of kafkajs', () => {
  it('null, repeated and inherited names', async () => {
    const kafka = createFakeKafka({ topics: { orders: 1 } })
    const headers = [
      ['null', null],
      ['twice', null],
      ['twice', 'x'],
      ['toString', 'y'],
      ['__proto__', 'z'],
    ] as const
    kafka.produce('orders', { value: 'x', headers })
    const consumer = kafka.consumer({ groupId: 'g' })
    let seen: any
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
    await consumer.run({ eachMessage: async ({ message }) => void (seen = message.headers) })
    await kafka.clock.settle()
    expect(Object.keys(seen)).toEqual(['null', 'twice', 'toString', '__proto__'])
    expect(seen.null).toBeNull()
    expect(seen.twice).toEqual([null, Buffer.from('x')])
    expect(seen.toString).toEqual([Object.prototype.toString, Buffer.from('y')])
    expect(Object.getOwnPropertyDescriptor(seen, '__proto__')?.value).toEqual([Object.prototype, Buffer.from('z')])
    await consumer.disconnect()
  })
})

describe('what a test does behind the back of the clients', () => {
  it('creates topics with settings, and refuses those that a broker refuses', async () => {
    const kafka = createFakeKafka({ topics: { orders: { partitions: 2, config: { 'retention.ms': '1000' } } } })
    kafka.createTopic('late', { partitions: 3 })
    kafka.addPartitions('late', 1)
    const admin = kafka.admin()
    await admin.connect()
    const { topics } = await admin.fetchTopicMetadata({ topics: ['orders', 'late'] })
    expect(topics.map(({ name, partitions }) => [name, partitions.length])).toEqual([
      ['orders', 2],
      ['late', 4],
    ])
    expect(() => kafka.createTopic('bad', { config: { 'retention.ms': 'soon' } })).toThrow('Configuration is invalid')
    expect(() => kafka.createTopic('orders')).toThrow('already exists')
  })

  it('cuts and compacts a log', async () => {
    const kafka = createFakeKafka({ topics: { orders: 1 } })
    for (let i = 0; i < 6; i++) kafka.produce('orders', { key: String(i), value: 'x' })
    kafka.broker.compact('orders', 0, ({ offset }) => offset % 2n === 0n)
    kafka.deleteRecords('orders', 0, 2n)
    expect(kafka.records('orders').map(({ offset }) => offset)).toEqual([2n, 4n, 5n])
    const consumer = kafka.consumer({ groupId: 'g' })
    const seen: unknown[] = []
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
    await consumer.run({
      eachBatch: async ({ batch }) => {
        seen.push([(batch as any).fetchedOffset, batch.firstOffset(), batch.lastOffset(), batch.messages.length])
      },
    })
    await kafka.clock.settle()
    expect(seen).toEqual([['2', '2', '5', 3]])
    expect(kafka.committed('g', 'orders').get(0)).toEqual({ offset: 6n, metadata: '' })
    await consumer.disconnect()
  })

  it('keeps every commit that the broker took, in order', async () => {
    const kafka = createFakeKafka({ topics: { orders: 1, other: 1 }, startAt: 0 })
    const consumer = kafka.consumer({ groupId: 'g' })
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
    await consumer.run({ eachMessage: async () => undefined })
    for (let i = 0; i < 2; i++) {
      kafka.produce('orders', { value: 'x' })
      await kafka.clock.advance(10)
    }
    const commits = kafka.commits('g', 'orders')
    expect(commits.map(({ offset, at, generationId }) => [offset, at, generationId])).toEqual([
      [1n, 0, 1],
      [2n, 10, 1],
    ])
    expect(commits[0]?.memberId).toBe(kafka.broker.members('g')[0]?.memberId)
    expect([kafka.commits('g', 'other'), kafka.commits('nobody')]).toEqual([[], []])
    await consumer.disconnect()
  })

  it('has clients of their own, which do not share what kafkajs shares in one', async () => {
    const kafka = createFakeKafka({ topics: { orders: 2 } })
    const consumers = [kafka, kafka.client({ clientId: 'other' })].map((one) => one.consumer({ groupId: 'g' }))
    for (const consumer of consumers) {
      await consumer.connect()
      await consumer.subscribe({ topics: ['orders'] })
    }
    // Started together, so they join together.
    await Promise.all(consumers.map((consumer) => consumer.run({ eachMessage: async () => undefined })))
    await kafka.clock.settle()
    expect(kafka.broker.group('g')).toEqual({ state: 'Stable', generation: 1 })
    expect(kafka.broker.members('g').map(({ clientId, assignment }) => [clientId, assignment])).toEqual([
      ['kafkajs', { orders: [0] }],
      ['other', { orders: [1] }],
    ])
    await Promise.all(consumers.map((consumer) => consumer.disconnect()))
    expect([kafka.clock.timers(), kafka.clock.busy()]).toEqual([0, []])
  })
})

describe('memory', () => {
  it('keeps to maxBytes, and lets no partition starve', async () => {
    const kafka = createFakeKafka({ topics: { orders: 3 } })
    for (let i = 0; i < 60; i++) kafka.produce('orders', { value: 'x'.repeat(1000), partition: i % 3 })
    const consumer = kafka.consumer({ groupId: 'g', maxBytes: 3000, maxBytesPerPartition: 100_000 })
    const seen: number[] = []
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
    await consumer.run({ eachBatch: async ({ batch }) => void seen.push(batch.partition, batch.messages.length) })
    await kafka.clock.settle()
    expect(seen.filter((_, i) => i % 2 === 1).every((count) => count <= 2)).toBe(true)
    expect(new Set(seen.slice(0, 12).filter((_, i) => i % 2 === 0)).size).toBe(3)
    expect(kafka.committed('g', 'orders').size).toBe(3)
    await consumer.disconnect()
  })
})

describe('what is not faked', () => {
  const list = readFileSync(new URL('../../../src/testing/NOT-FAKED.md', import.meta.url), 'utf8')

  it('throws, names itself and stands in NOT-FAKED.md', async () => {
    const kafka = createFakeKafka({ topics: { orders: 1 } })
    const admin = kafka.admin()
    await admin.connect()
    const broker = [{ type: 4, name: '1', configEntries: [] }]
    const calls: Record<string, () => unknown> = {
      describeAcls: () => admin.describeAcls({}),
      createAcls: () => admin.createAcls({}),
      deleteAcls: () => admin.deleteAcls({}),
      alterPartitionReassignments: () => admin.alterPartitionReassignments({}),
      listPartitionReassignments: () => admin.listPartitionReassignments({}),
      replicaAssignment: () => admin.createTopics({ topics: [{ topic: 'x', replicaAssignment: [{}] }] }),
      describeConfigs: () => admin.describeConfigs({ resources: broker, includeSynonyms: false }),
      alterConfigs: () => admin.alterConfigs({ resources: broker, validateOnly: false }),
    }
    for (const [name, call] of Object.entries(calls)) {
      await expect(async () => call(), name).rejects.toMatchObject({ code: 'RETRYLINE_TESTING' })
      expect(list).toContain(name)
    }
  })
})
