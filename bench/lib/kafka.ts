import { Kafka, logLevel } from 'kafkajs'
import type { RunContext } from './suite'

export const PARTITIONS = 6

export const client = (brokers: string[]): Kafka =>
  new Kafka({ clientId: 'bench', brokers, logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50, retries: 8 } })

export async function createTopics(brokers: string[], topics: string[]): Promise<void> {
  const admin = client(brokers).admin()
  await admin.connect()
  try {
    const wanted = topics.map((topic) => ({ topic, numPartitions: PARTITIONS, replicationFactor: 1 }))
    await admin.createTopics({ topics: wanted, waitForLeaders: true })
  } finally {
    await admin.disconnect()
  }
}

/** What is wrong with a group's committed offsets, when it has handled all of a topic. */
export async function uncommitted(context: RunContext, groupId: string, topic: string): Promise<string[]> {
  const admin = client(context.brokers).admin()
  await admin.connect()
  try {
    const ends = new Map((await admin.fetchTopicOffsets(topic)).map(({ partition, high }) => [partition, high]))
    const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] })
    return (committed?.partitions ?? [])
      .filter(({ partition, offset }) => offset !== ends.get(partition))
      .map(({ partition, offset }) => `partition ${partition}: committed ${offset}, end ${ends.get(partition)}`)
  } finally {
    await admin.disconnect()
  }
}

/** For systems that would print: a benchmark measures the work, not the terminal. */
const nothing = (): void => undefined
export const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing }
