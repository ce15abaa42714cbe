import { promisify } from 'node:util'
import { Kafka, logLevel } from 'kafkajs'
import { unique } from '../../../helpers/broker-shared'
import { plain, type Story } from './stage'

/** Time on the real stage is real: what passes there is part of the story. */
const sleep: (ms: number) => Promise<void> = promisify(setTimeout)

export async function onReal(story: Story, brokers: string[]): Promise<unknown[]> {
  const client = (): Kafka => new Kafka({ brokers, clientId: 'kafkajs', logLevel: logLevel.NOTHING })
  const kafka = client()
  const prefix = `${unique('alike')}.`
  const trace: unknown[] = []
  await story({
    kafka,
    other: client,
    topic: (name = 'orders') => prefix + name,
    group: (name = 'billing') => prefix + name,
    async create(name, numPartitions = 1, config = {}) {
      const admin = kafka.admin()
      await admin.connect()
      const configEntries = Object.entries(config).map(([key, value]) => ({ name: key, value }))
      await admin.createTopics({ topics: [{ topic: prefix + name, numPartitions, configEntries }] })
      await admin.disconnect()
    },
    async transact(topic, values) {
      const producer = kafka.producer({ transactionalId: unique('alike'), idempotent: true, maxInFlightRequests: 1 })
      await producer.connect()
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: values.map((value) => ({ value, partition: 0 })) })
      await transaction.commit()
      await producer.disconnect()
    },
    pass: (ms) => sleep(ms),
    async until(condition) {
      const end = Date.now() + 40_000
      while (!condition()) {
        if (Date.now() > end) throw new Error('it never came to that')
        await sleep(20)
      }
    },
    sleep: (ms) => sleep(ms),
    gate: (promise) => promise,
    eventually: (promise) => promise,
    note: (...seen) => void trace.push(plain(seen, prefix)),
  })
  return trace
}
