/**
 * What programs beside a consumer do, through plain kafkajs and no more of it than they need: put a dead letter back, and
 * look at what waits. A refusal is told as the library tells one.
 */
import type { Admin, Kafka, KafkaMessage } from 'kafkajs'
import { createDenials, type Asked } from '../../../src/adapters/kafkajs/denied'
import { HEADER } from '../../../src/envelope'
import type { Topology } from '../../../src/topology'

type Ask = <T>(
  asked: readonly [Asked['operation'], Asked['resourceType'], string][],
  act: () => Promise<T>,
) => Promise<T>

function asking(kafka: Kafka): Ask {
  const denials = createDenials(kafka)
  return async (asked, act) => {
    try {
      return await act()
    } catch (error) {
      const told = asked.map(([operation, resourceType, name]) => ({ operation, resourceType, names: [name] }))
      throw await denials.explain(error, told)
    }
  }
}

async function withAdmin<T>(kafka: Kafka, act: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await act(admin)
  } finally {
    await admin.disconnect()
  }
}

/** The oldest dead letter, read with a group that commits nothing. `as` is the end of the group's name. */
export async function oldestDeadLetter(kafka: Kafka, topology: Topology, as: string): Promise<KafkaMessage> {
  const topic = topology.deadLetterTopic(topology.topics[0]!)
  const groupId = `${topology.groupId}.${as}`
  const consumer = kafka.consumer({
    groupId,
    retry: { retries: 5, initialRetryTime: 50, restartOnFailure: () => Promise.resolve(false) },
  })
  const read = async (): Promise<KafkaMessage> => {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    return new Promise((resolve, reject) => {
      consumer.on('consumer.crash', ({ payload }) => reject(payload.error))
      const eachMessage = ({ message }: { message: KafkaMessage }): Promise<void> => Promise.resolve(resolve(message))
      consumer.run({ autoCommit: false, eachMessage }).catch(reject)
    })
  }
  try {
    const asked: Parameters<Ask>[0] = [
      ['Read', 'topic', topic],
      ['Read', 'group', groupId],
    ]
    return await asking(kafka)(asked, read)
  } finally {
    await consumer.disconnect()
  }
}

/** Puts the oldest dead letter back, for this group alone. Resolves with how many dead letters there are. */
export async function replayOne(kafka: Kafka, topology: Topology, to: 'retry' | 'main'): Promise<number> {
  const ask = asking(kafka)
  const main = topology.topics[0]!
  const dead = topology.deadLetterTopic(main)
  const [ends] = await withAdmin(kafka, (admin) => ask([['Read', 'topic', dead]], () => admin.fetchTopicOffsets(dead)))
  const { key, value, headers } = await oldestDeadLetter(kafka, topology, 'replay')

  const tiers = [...topology.tiers].sort((a, b) => a.delayMs - b.delayMs)
  const target = to === 'main' ? main : topology.retryTopic(main, tiers[0]!)
  const replay = {
    [HEADER.attempt]: to === 'main' ? '1' : '2',
    [HEADER.dueAt]: String(Date.now()),
    [HEADER.replayed]: 'true',
    [HEADER.replayCount]: '1',
    [HEADER.replayForGroup]: topology.groupId,
  }
  const producer = kafka.producer({ allowAutoTopicCreation: false })
  await producer.connect()
  try {
    const messages = [{ key, value, headers: { ...headers, ...replay } }]
    await ask([['Write', 'topic', target]], () => producer.send({ topic: target, messages }))
  } finally {
    await producer.disconnect()
  }
  return Number(ends?.high) - Number(ends?.low)
}

export interface Watched {
  /** By retry topic and dead letter topic. */
  readonly sizes: ReadonlyMap<string, number>
  /** The same; to the second, and undefined where there is no record. */
  readonly agesMs: ReadonlyMap<string, number | undefined>
  readonly retentionsMs: ReadonlyMap<string, number>
  /** By group: records that it has not committed yet. */
  readonly lags: ReadonlyMap<string, number>
}

const TOPIC = 2
const SECOND = 1_000

/** Reads no record: the age of the oldest is found by asking which offsets there are from a time on. */
export function watch(kafka: Kafka, topology: Topology): Promise<Watched> {
  const ask = asking(kafka)
  const main = topology.topics[0]!
  const waiting = topology.allTopics().filter(({ role }) => role !== 'main')
  const read = [
    { groupId: topology.groupId, topic: main },
    ...topology.tiers.map((tier) => ({ groupId: tier.groupId, topic: topology.retryTopic(main, tier) })),
  ]
  return withAdmin(kafka, async (admin) => {
    const range = async (topic: string): Promise<{ low: number; high: number }> => {
      const [only] = await ask([['Describe', 'topic', topic]], () => admin.fetchTopicOffsets(topic))
      return { low: Number(only!.low), high: Number(only!.high) }
    }
    const lags = new Map<string, number>()
    for (const { groupId, topic } of read) {
      const { low, high } = await range(topic)
      const [found] = await ask([['Describe', 'group', groupId]], () =>
        admin.fetchOffsets({ groupId, topics: [topic] }),
      )
      const committed = Number(found!.partitions[0]!.offset)
      lags.set(groupId, high - (committed < 0 ? low : committed))
    }

    const retentionsMs = new Map<string, number>()
    for (const { topic } of waiting) {
      const resources = [{ type: TOPIC, name: topic, configNames: ['retention.ms'] }]
      const settings = await ask([['DescribeConfigs', 'topic', topic]], () =>
        admin.describeConfigs({ includeSynonyms: false, resources }),
      )
      retentionsMs.set(topic, Number(settings.resources[0]!.configEntries[0]!.configValue))
    }

    const sizes = new Map<string, number>()
    const agesMs = new Map<string, number | undefined>()
    for (const { topic } of waiting) {
      const { low, high } = await range(topic)
      sizes.set(topic, high - low)
      agesMs.set(topic, low === high ? undefined : await age(admin, topic, low, retentionsMs.get(topic)!))
    }
    return { sizes, agesMs, retentionsMs, lags }
  })
}

/** The latest time from which on the record at `low` is still there is its own, to the second. */
async function age(admin: Admin, topic: string, low: number, retentionMs: number): Promise<number> {
  const now = Date.now()
  let [younger, older] = [0, retentionMs]
  while (older - younger > SECOND) {
    const middle = (younger + older) / 2
    const [from] = await admin.fetchTopicOffsetsByTimestamp(topic, Math.floor(now - middle))
    if (Number(from!.offset) > low) younger = middle
    else older = middle
  }
  return older
}
