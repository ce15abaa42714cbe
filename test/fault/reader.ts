/** What stands on topics, as a `read_committed` reader sees it unless another is asked for: every record, up to the end there was at the call. */
import kafkajs, { type Admin, type IHeaders, type Kafka } from 'kafkajs'
import { readingAround } from '../../src/adapters/kafkajs/read-around'
import { HEADER } from '../../src/envelope'
import type { Place } from './ledger'
import { until } from './until'

export interface Standing {
  readonly topic: string
  readonly at: Place
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: IHeaders
}

/** A copy on a retry topic or a dead letter topic. */
export interface Hop {
  readonly at: Place
  /** Where the record first stood. */
  readonly place: Place
  /** Of a retry topic the attempt to be made, of a dead letter topic the attempts made. */
  readonly attempt: number
  readonly reason?: string
}

// kafkajs delivers records of aborted transactions where these overlap (src/adapters/kafkajs/aborted.ts).
const { PartitionAssigners } = kafkajs
const partitionAssigners = readingAround([PartitionAssigners.roundRobin as never], () => undefined) as never[]

export async function readAll(
  kafka: Kafka,
  admin: Admin,
  topics: readonly string[],
  groupId: string,
  { readUncommitted = false } = {},
): Promise<Standing[]> {
  const ends = new Map<string, bigint>()
  for (const topic of topics)
    for (const { partition, high, low } of await admin.fetchTopicOffsets(topic))
      if (BigInt(high) > BigInt(low)) ends.set(`${topic}/${partition}`, BigInt(high))
  if (ends.size === 0) return []
  const consumer = kafka.consumer({
    groupId,
    maxWaitTimeInMs: 100,
    readUncommitted,
    retry: { retries: 10 },
    partitionAssigners,
  })
  const found: Standing[] = []
  // Control records never reach eachBatch; where a batch ended is said for them too.
  consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload: { topic, partition, lastOffset } }) => {
    const key = `${topic}/${partition}`
    const end = ends.get(key)
    if (end !== undefined && BigInt(lastOffset) >= end - 1n) ends.delete(key)
  })
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: [...topics], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      partitionsConsumedConcurrently: 4,
      eachBatch: async ({ batch: { topic, partition, messages } }) => {
        for (const { offset, key, value, headers = {} } of messages)
          found.push({ topic, at: `${topic}/${partition}@${offset}`, key, value, headers })
      },
    })
    await until('all of the topics is read', () => ends.size === 0, 120_000).catch((error: Error) => {
      throw new Error(`${error.message}: ${[...ends.keys()].join(', ')}`)
    })
    // A partition that was read twice, after a rejoin, is told once.
    return [...new Map(found.map((one) => [one.at, one])).values()]
  } finally {
    await consumer.disconnect()
  }
}

export function hopOf({ at, headers }: Standing): Hop {
  const text = (name: string): string => String(headers[name])
  const place = `${text(HEADER.originalTopic)}/${text(HEADER.originalPartition)}@${text(HEADER.originalOffset)}`
  const reason = headers[HEADER.failureReason]
  return { at, place, attempt: Number(text(HEADER.attempt)), ...(reason !== undefined && { reason: String(reason) }) }
}
