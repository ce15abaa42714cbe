/** What the demo does with Kafka beside the consumer: with kafkajs alone, as you would from any other program. */
import type { Stage } from './stage'
import { deliveryOf, type Webhook } from './payloads'

export const PARTITIONS = 6
/** A broker takes a megabyte in one batch. */
const AT_ONCE = 20

export interface DeadLetter {
  readonly id: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, unknown>>
}

export interface Position {
  readonly group: string
  readonly topic: string
  readonly partition: number
  /** Decimal text, as the broker gives both; '-1' where nothing was committed. */
  readonly committed: string
  readonly end: string
}

type Kafka = Stage['kafka']
type Admin = ReturnType<Kafka['admin']>

async function withAdmin<T>(kafka: Kafka, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

export async function createTopic(kafka: Kafka, topic: string): Promise<void> {
  const topics = [{ topic, numPartitions: PARTITIONS }]
  await withAdmin(kafka, (admin) => admin.createTopics({ topics, waitForLeaders: true }))
}

export async function produce(kafka: Kafka, topic: string, webhooks: readonly Webhook[]): Promise<void> {
  const producer = kafka.producer()
  await producer.connect()
  try {
    for (let at = 0; at < webhooks.length; at += AT_ONCE) {
      const messages = webhooks.slice(at, at + AT_ONCE).map(({ key, value, headers }) => ({ key, value, headers }))
      await producer.send({ topic, acks: -1, messages })
    }
  } finally {
    await producer.disconnect()
  }
}

/** Everything that stands on the topic now. */
export async function readAll(kafka: Kafka, topic: string, groupId: string): Promise<DeadLetter[]> {
  const offsets = await withAdmin(kafka, (admin) => admin.fetchTopicOffsets(topic))
  let left = offsets.reduce((sum, { low, high }) => sum + BigInt(high) - BigInt(low), 0n)
  const found: DeadLetter[] = []
  if (left === 0n) return found
  const consumer = kafka.consumer({ groupId })
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await new Promise<void>((resolve, reject) => {
      const eachMessage = async ({
        message,
      }: {
        message: Omit<DeadLetter, 'id' | 'headers'> & { headers?: object }
      }) => {
        const headers = { ...message.headers }
        found.push({ id: deliveryOf(headers) ?? '(unknown)', key: message.key, value: message.value, headers })
        if (--left === 0n) resolve()
      }
      consumer.run({ autoCommit: false, eachMessage }).catch(reject)
    })
  } finally {
    await consumer.disconnect()
  }
  return found
}

/** How far each group has come on the topics that it reads, and where these end. */
export function positions(kafka: Kafka, read: ReadonlyMap<string, readonly string[]>): Promise<Position[]> {
  return withAdmin(kafka, async (admin) => {
    const all: Position[] = []
    for (const [group, topics] of read) {
      const committed = await admin.fetchOffsets({ groupId: group, topics: [...topics] })
      for (const topic of topics) {
        const ours = committed.find((one) => one.topic === topic)?.partitions ?? []
        for (const { partition, high } of await admin.fetchTopicOffsets(topic)) {
          const at = ours.find((one) => one.partition === partition)?.offset ?? '-1'
          all.push({ group, topic, partition, committed: at, end: high })
        }
      }
    }
    return all
  })
}
