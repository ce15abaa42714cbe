import type { Admin, ITopicConfig } from 'kafkajs'
import { setTimeout } from 'node:timers/promises'

const WAIT_MS = 60_000

/**
 * Topics on a cluster of several nodes, in sync everywhere. Not with kafkajs's `waitForLeaders`: a node that has not heard of a topic
 * yet answers UNKNOWN_TOPIC_OR_PARTITION, and kafkajs does not ask again.
 */
export async function createTopicsEverywhere(admin: Admin, topics: readonly ITopicConfig[]): Promise<void> {
  await admin.createTopics({ waitForLeaders: false, topics: [...topics] })
  const names = topics.map(({ topic }) => topic)
  const replicas = new Map(topics.map(({ topic, replicationFactor = 1 }) => [topic, replicationFactor]))
  const deadline = Date.now() + WAIT_MS
  for (;;) {
    const found = await admin.fetchTopicMetadata({ topics: names }).catch((error: unknown) => {
      if (Date.now() > deadline) throw error
      return undefined
    })
    const inSync = found?.topics.every(({ name, partitions }) =>
      partitions.every(({ isr }) => isr.length === replicas.get(name)),
    )
    if (inSync) return
    if (Date.now() > deadline) throw new Error(`not in sync after ${WAIT_MS} ms: ${names.join()}`)
    await setTimeout(100)
  }
}
