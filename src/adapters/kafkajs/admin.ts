import { RetrylineError } from '../../errors'
import type { CommittedOffset, LogRange, TopicAdmin, TopicSettings } from '../../ports'
import { errorType } from './errors'
import type { AdminLike, KafkaJsLike } from './kafkajs-like'

/** Kafka's number for a topic in a request that describes configurations. */
const TOPIC_RESOURCE = 2
/** "The broker's default", for a replication factor (KIP-464). */
const BROKER_DEFAULT = -1

/** What is no name of a topic names none. */
const NO_SUCH_TOPIC: ReadonlySet<string | undefined> = new Set([
  'UNKNOWN_TOPIC_OR_PARTITION',
  'INVALID_TOPIC_EXCEPTION',
])

/** How often metadata may be lost to other questions before it counts as an error. */
const METADATA_TRIES = 3

const NO_ANSWER = 'the broker has not answered a request of the admin client; a new connection is made'

/**
 * Lines:  made -> connected -> given up, when a request of it had no answer in its time -> another takes its place
 *   What still waits on one that is given up fails at once, and whoever asked asks again: where a connection was cut in the
 *   middle of an answer, kafkajs reads the next one's bytes behind the half that it keeps, and answers nothing any more; and
 *   its own tries, of 30 s each, would keep a lane closed for minutes.
 *
 * Must never happen: a line that is left open after `disconnect()`.
 */
interface Line {
  readonly admin: AdminLike
  /** Told when it is given up: those who wait for an answer of it, and nobody who has got one. */
  readonly waiting: Set<(error: Error) => void>
  connecting: Promise<void> | undefined
}

export function createKafkajsAdmin(kafka: KafkaJsLike): TopicAdmin {
  let closed = false
  /** Lines that were given up, on their way out. */
  const leaving = new Set<Promise<void>>()
  /** Topics whose metadata the present line has loaded. */
  const warm = new Set<string>()
  let line = open()

  function open(): Line {
    const admin = kafka.admin({ retry: { initialRetryTime: 100, maxRetryTime: 2_000, retries: 5 } })
    const made: Line = { admin, waiting: new Set(), connecting: undefined }
    admin.on?.('admin.network.request_timeout', () => {
      if (made !== line || closed) return
      for (const fail of made.waiting) fail(new RetrylineError('RETRYLINE_CONNECT', NO_ANSWER))
      const left = admin
        .disconnect()
        .catch(() => undefined)
        .finally(() => leaving.delete(left))
      leaving.add(left)
      warm.clear()
      line = open()
    })
    return made
  }

  function connected(mine: Line): Promise<void> {
    const connecting = (mine.connecting ??= mine.admin.connect())
    connecting.catch(() => {
      if (mine.connecting === connecting) mine.connecting = undefined
    })
    return connecting
  }

  /** Asks the present line. */
  function ask<T>(question: (admin: AdminLike) => Promise<T>): Promise<T> {
    const mine = line
    return new Promise((resolve, reject) => {
      mine.waiting.add(reject)
      connected(mine)
        .then(() => question(mine.admin))
        .then(resolve, reject)
        .finally(() => mine.waiting.delete(reject))
    })
  }

  async function partitions(topics: readonly string[]): Promise<Map<string, number>> {
    if (topics.length === 0) return new Map()
    try {
      const { topics: found } = await ask((admin) => admin.fetchTopicMetadata({ topics: [...topics] }))
      for (const topic of topics) warm.add(topic)
      return new Map(found.map(({ name, partitions }) => [name, partitions.length]))
    } catch (error) {
      if (!NO_SUCH_TOPIC.has(errorType(error))) throw error
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

  /**
   * kafkajs keeps the metadata of the topics that it was last asked for, and of no others. Where two questions meet, it takes the
   * topic of one for a topic without partitions: a group's offsets are then missing from the answer, as if it had none, and a
   * log's ends are a TypeError. Such an answer is none.
   */
  async function withMetadata<T>(
    topics: readonly string[],
    question: (admin: AdminLike) => Promise<T>,
    isWhole: (answer: T) => boolean,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      await warmUp(topics)
      let answer: { readonly whole: boolean; readonly value: T } | undefined
      try {
        const value = await ask(question)
        answer = { whole: isWhole(value), value }
      } catch (error) {
        if (!(error instanceof TypeError)) throw error
      }
      if (answer?.whole) return answer.value
      for (const topic of topics) warm.delete(topic)
      if (tries === METADATA_TRIES) throw new RetrylineError('RETRYLINE_CONNECT', noMetadata(topics))
    }
  }

  return {
    connect: () => connected(line),
    async disconnect() {
      closed = true
      await Promise.all([line.admin.disconnect(), ...leaving])
    },
    clusterId: async () => (await ask((admin) => admin.describeCluster())).clusterId,
    partitions,
    async settings(topics) {
      const { resources } = await ask((admin) =>
        admin.describeConfigs({
          includeSynonyms: false,
          resources: topics.map((name) => ({
            type: TOPIC_RESOURCE,
            name,
            configNames: ['cleanup.policy', 'retention.ms', 'max.message.bytes'],
          })),
        }),
      )
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
    listTopics: () => ask((admin) => admin.listTopics()),
    async createTopics(topics) {
      await ask((admin) =>
        admin.createTopics({
          // Whoever asks waits until they can be seen. kafkajs's own wait fails where the broker that it asks does not
          // know the new topic yet, as on a busy cluster.
          waitForLeaders: false,
          topics: topics.map(({ topic, partitions: numPartitions, config }) => ({
            topic,
            numPartitions,
            replicationFactor: BROKER_DEFAULT,
            configEntries: Object.entries(config).map(([name, value]) => ({ name, value })),
          })),
        }),
      )
    },
    async committed(groupId, topics) {
      const found = await withMetadata(
        topics,
        (admin) => admin.fetchOffsets({ groupId, topics: [...topics] }),
        (answer) => topics.every((topic) => answer.some((one) => one.topic === topic && one.partitions.length > 0)),
      )
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
      const found = await withMetadata([topic], (admin) => admin.fetchTopicOffsets(topic), isSome)
      return found.map(({ partition, low, high }): LogRange => ({
        topic,
        partition,
        low: BigInt(low),
        high: BigInt(high),
      }))
    },
    async offsetsAt(topic, time) {
      const found = await withMetadata([topic], (admin) => admin.fetchTopicOffsetsByTimestamp(topic, time), isSome)
      return new Map(found.map(({ partition, offset }) => [partition, BigInt(offset)]))
    },
  }
}

const isSome = (answer: readonly unknown[]): boolean => answer.length > 0

const noMetadata = (topics: readonly string[]): string =>
  `kafkajs has no metadata of ${topics.map((topic) => `'${topic}'`).join(', ')}: do they exist?`

function toNumber(value: string | undefined): number | undefined {
  return value === undefined || value === '' ? undefined : Number(value)
}
