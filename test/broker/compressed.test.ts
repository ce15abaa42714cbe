import { CompressionTypes, Kafka, logLevel } from 'kafkajs'
import { expect, test } from 'vitest'
import { createResilientConsumer, RetryableError } from '../../src/index'
import { silentLogger } from '../../src/ports'
import { describeWithBroker, unique } from '../helpers/broker-shared'

describeWithBroker('a record that fits its topic only compressed', ({ brokers }) => {
  test('reaches its retry topic and its second attempt, its bytes untouched', async () => {
    const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING })
    const admin = kafka.admin()
    const producer = kafka.producer({ createPartitioner: () => () => 0 })
    await Promise.all([admin.connect(), producer.connect()])
    const topic = unique('large')
    await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true })
    const value = Buffer.alloc(3 * 1024 * 1024, 'compresses well ')
    await producer.send({ topic, compression: CompressionTypes.GZIP, messages: [{ value }] })

    const seen: { attempt: number; same: boolean }[] = []
    let second = (): void => undefined
    const done = new Promise<void>((resolve) => (second = resolve))
    const consumer = createResilientConsumer({
      kafka,
      groupId: unique('large'),
      topic,
      schedule: ['100ms'],
      topicSetup: 'create',
      logger: silentLogger,
      handler: async ({ message }, { attempt }) => {
        seen.push({ attempt, same: message.value?.equals(value) ?? false })
        if (attempt === 1) throw new RetryableError('again')
        second()
      },
    })
    try {
      await consumer.start()
      await done
    } finally {
      await consumer.stop()
      await Promise.all([admin.disconnect(), producer.disconnect()])
    }
    expect(seen).toEqual([
      { attempt: 1, same: true },
      { attempt: 2, same: true },
    ])
  })
})
