import { describe, expect, test } from 'vitest'
import { createKafkajsPublisher } from '../../../../src/adapters/kafkajs/publisher'
import { silentLogger } from '../../../../src/ports'
import type { Outgoing } from '../../../../src/record'
import { createTestClock, turn } from '../../../helpers/test-clock'
import { isSettled } from '../../consume/given'
import { createStubKafka } from './stub'

function setUp() {
  const kafka = createStubKafka()
  const publisher = createKafkajsPublisher(kafka, { clock: createTestClock(), logger: silentLogger })
  return { kafka, publisher, producers: kafka.producers }
}

const record = (fields: Partial<Outgoing> = {}): Outgoing => ({
  topic: 'orders.dlq',
  partition: 3,
  key: Buffer.from('k'),
  value: null,
  headers: [
    ['a', Buffer.from('1')],
    ['a', Buffer.from('2')],
  ],
  ...fields,
})

describe('rule 17: the publisher', () => {
  test('waits for all replicas, is not idempotent, makes no topics, and has a partitioner of its own', async () => {
    const { publisher, producers } = setUp()
    await publisher.publish([record()])
    const { config, sent } = producers[0]!
    expect(config).toMatchObject({ idempotent: false, allowAutoTopicCreation: false })
    expect(config.createPartitioner()({ message: { partition: 3 } })).toBe(3)
    expect(sent[0].acks).toBe(-1)
  })

  test('rule 16: every record goes out with its own partition, bytes and headers, grouped by topic, in order', async () => {
    const { publisher, producers } = setUp()
    await publisher.publish([record(), record({ topic: 'orders.retry.1m', partition: 0 }), record({ partition: 1 })])
    expect(producers[0]!.sent[0].topicMessages).toEqual([
      {
        topic: 'orders.dlq',
        messages: [3, 1].map((partition) => ({
          key: Buffer.from('k'),
          value: null,
          partition,
          headers: { a: [Buffer.from('1'), Buffer.from('2')] },
        })),
      },
      { topic: 'orders.retry.1m', messages: [expect.objectContaining({ partition: 0 })] },
    ])
  })

  test('gives back what the broker answered, error codes too', async () => {
    const { publisher, producers } = setUp()
    await publisher.connect()
    producers[0]!.answer = [{ topicName: 'orders.dlq', partition: 3, errorCode: 6, baseOffset: '1' }]
    expect(await publisher.publish([record()])).toEqual([{ topic: 'orders.dlq', partition: 3, errorCode: 6 }])
  })

  test('after a reset the next publish starts on a new connection, and the old one is ended', async () => {
    const { publisher, producers } = setUp()
    await publisher.publish([record()])
    await publisher.reset()
    await publisher.reset()
    await publisher.publish([record()])
    expect(producers.map(({ calls }) => calls)).toEqual([
      ['connect', 'sendBatch', 'disconnect'],
      ['connect', 'sendBatch'],
    ])
  })

  test('a reset during a connect: what waits for it goes out on that connection, and fails there as it may', async () => {
    const { publisher, producers } = setUp()
    const publishing = publisher.publish([record()])
    const resetting = publisher.reset()
    await Promise.all([publishing, resetting])
    expect(producers[0]!.sent).toHaveLength(1)
  })

  test('publishes at once share one connect', async () => {
    const { publisher, producers } = setUp()
    await Promise.all([publisher.connect(), publisher.publish([record()]), publisher.publish([record()])])
    expect(producers.map(({ calls }) => calls)).toEqual([['connect', 'sendBatch', 'sendBatch']])
  })

  test('a connect that fails is told to all who wait for it, and tried anew by the next', async () => {
    const kafka = createStubKafka()
    const publisher = createKafkajsPublisher(kafka, { clock: createTestClock(), logger: silentLogger })
    const { producer } = kafka
    let broken = true
    kafka.producer = (config) => {
      const like = producer(config)
      return broken ? { ...like, connect: () => Promise.reject(new Error('nobody there')) } : like
    }
    await expect(publisher.publish([record()])).rejects.toThrow('nobody there')
    broken = false
    await publisher.publish([record()])
    expect(kafka.producers.at(-1)!.calls).toEqual(['connect', 'sendBatch'])
  })

  test('P9: disconnect ends what is connected, and nothing can be published afterwards', async () => {
    const { publisher, producers } = setUp()
    await publisher.connect()
    await publisher.disconnect()
    await publisher.disconnect()
    await expect(publisher.publish([record()])).rejects.toThrow('the publisher is closed')
    expect(producers.map(({ calls }) => calls)).toEqual([['connect', 'disconnect']])
  })

  test('P9: a disconnect, or a reset, during a connect waits for that, and leaves no connection', async () => {
    for (const how of ['disconnect', 'reset'] as const) {
      const { kafka, publisher, producers } = setUp()
      const { producer } = kafka
      let connect!: { resolve(value: void): void }
      kafka.producer = (config) => {
        const like = producer(config)
        connect = producers.at(-1)!.hold('connect')
        return like
      }
      void publisher.connect()
      const ended = publisher[how]()
      await turn()
      expect([await isSettled(ended), producers[0]!.calls]).toEqual([false, ['connect']])
      connect.resolve()
      await ended
      expect(producers[0]!.calls).toEqual(['connect', 'disconnect'])
    }
  })

  test('P9: disconnect waits for connections that were given up before', async () => {
    const { publisher, producers } = setUp()
    await publisher.connect()
    const held = producers[0]!.hold('disconnect')
    void publisher.reset()
    const ended = publisher.disconnect()
    expect(await isSettled(ended)).toBe(false)
    held.resolve()
    await ended
  })
})
