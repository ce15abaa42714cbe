import type { CommittedOffset, LogRange, TopicAdmin, TopicSettings } from '../../ports'
import { errorType } from './errors'
import type { AdminLike, KafkaJsLike } from './kafkajs-like'

/** Kafka's number for a topic in a request that describes configurations. */
const TOPIC_RESOURCE = 2
/** "The broker's default", for a replication factor (KIP-464). */
const BROKER_DEFAULT = -1

export function createKafkajsAdmin(kafka: KafkaJsLike): TopicAdmin {
  const admin: AdminLike = kafka.admin({ retry: { initialRetryTime: 100, maxRetryTime: 2_000, retries: 5 } })
  /** Topics whose metadata this client has loaded. */
  const warm = new Set<string>()

  async function partitions(topics: readonly string[]): Promise<Map<string, number>> {
    if (topics.length === 0) return new Map()
    try {
      const { topics: found } = await admin.fetchTopicMetadata({ topics: [...topics] })
      for (const topic of topics) warm.add(topic)
      return new Map(found.map(({ name, partitions }) => [name, partitions.length]))
    } catch (error) {
      if (errorType(error) !== 'UNKNOWN_TOPIC_OR_PARTITION') throw error
      if (topics.length === 1) return new Map()
      // kafkajs fails the whole request for one missing topic, so find out which.
      const each = await Promise.all(topics.map((topic) => partitions([topic])))
      return new Map(each.flatMap((one) => [...one]))
    }
  }

  /**
   * Before the first look-up of offsets the metadata of our own topics must be loaded: cold, kafkajs loads that of every
   * topic in the cluster (260 to 370 ms on a small one), and fails when any of these has no leader.
   */
  async function warmUp(topics: readonly string[]): Promise<void> {
    const cold = topics.filter((topic) => !warm.has(topic))
    if (cold.length > 0) await partitions(cold)
  }

  return {
    connect: () => admin.connect(),
    disconnect: () => admin.disconnect(),
    clusterId: async () => (await admin.describeCluster()).clusterId,
    partitions,
    async settings(topics) {
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: topics.map((name) => ({
          type: TOPIC_RESOURCE,
          name,
          configNames: ['cleanup.policy', 'retention.ms', 'max.message.bytes'],
        })),
      })
      return new Map(
        resources.map(({ resourceName, configEntries }): [string, TopicSettings] => {
          const value = (name: string): string | undefined =>
            configEntries.find(({ configName }) => configName === name)?.configValue
          return [
            resourceName,
            {
              cleanupPolicy: value('cleanup.policy'),
              retentionMs: toNumber(value('retention.ms')),
              maxMessageBytes: toNumber(value('max.message.bytes')),
            },
          ]
        }),
      )
    },
    listTopics: () => admin.listTopics(),
    async createTopics(topics) {
      await admin.createTopics({
        waitForLeaders: true,
        topics: topics.map(({ topic, partitions: numPartitions, config }) => ({
          topic,
          numPartitions,
          replicationFactor: BROKER_DEFAULT,
          configEntries: Object.entries(config).map(([name, value]) => ({ name, value })),
        })),
      })
    },
    async committed(groupId, topics) {
      await warmUp(topics)
      const found = await admin.fetchOffsets({ groupId, topics: [...topics] })
      return found.flatMap(({ topic, partitions: all }) =>
        all.map(({ partition, offset, metadata }): CommittedOffset => ({
          topic,
          partition,
          offset: BigInt(offset),
          metadata,
        })),
      )
    },
    async ranges(topic) {
      await warmUp([topic])
      const found = await admin.fetchTopicOffsets(topic)
      return found.map(({ partition, low, high }): LogRange => ({
        topic,
        partition,
        low: BigInt(low),
        high: BigInt(high),
      }))
    },
    async offsetsAt(topic, time) {
      await warmUp([topic])
      const found = await admin.fetchTopicOffsetsByTimestamp(topic, time)
      return new Map(found.map(({ partition, offset }) => [partition, BigInt(offset)]))
    },
  }
}

function toNumber(value: string | undefined): number | undefined {
  return value === undefined || value === '' ? undefined : Number(value)
}
