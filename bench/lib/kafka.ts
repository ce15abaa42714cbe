import { Kafka, logLevel, type Admin, type Consumer, type ConsumerConfig } from 'kafkajs'
import type { Trace } from './system'

export const PARTITIONS = 6

/** What the consumers of this process were told about fetching, each kind once; where nothing, kafkajs's own default. */
const asked = new Set<string>()

function noted({
  minBytes = 1,
  maxBytes = 10_485_760,
  maxBytesPerPartition = 1_048_576,
  ...rest
}: ConsumerConfig): string {
  const kib = (bytes: number): string => `${bytes / 1024} KiB`
  const wait = `waits up to ${rest.maxWaitTimeInMs ?? 5000} ms for ${minBytes} byte`
  return `${kib(maxBytesPerPartition)} of a partition, ${kib(maxBytes)} in all, ${wait}`
}

/** The fetch settings that this process has used, as text. */
export const fetchSettings = (): string => [...asked].join('; ')

// On the class, for all clients: one with a method of its own is a stranger to retryline, which leaves its connections alone.
const make = Kafka.prototype.consumer
Kafka.prototype.consumer = function (config) {
  if (config) asked.add(noted(config))
  return make.call(this, config)
}

export function client(brokers: string[]): Kafka {
  return new Kafka({
    clientId: 'bench',
    brokers,
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 8 },
  })
}

/** Resolves when the consumer has joined its group; called before its `run`. */
export const joined = (consumer: Consumer): Promise<void> =>
  new Promise((resolve) => {
    const stop = consumer.on(consumer.events.GROUP_JOIN, () => {
      stop()
      resolve()
    })
  })

export async function createTopics(brokers: string[], topics: string[]): Promise<void> {
  const admin = client(brokers).admin()
  await admin.connect()
  try {
    const wanted = topics.map((topic) => ({ topic, numPartitions: PARTITIONS, replicationFactor: 1 }))
    // kafkajs's own wait fails where the broker takes a moment to know the new topic.
    await admin.createTopics({ topics: wanted, waitForLeaders: false })
    for (const topic of topics) await known(admin, topic)
  } finally {
    await admin.disconnect()
  }
}

async function known(admin: Admin, topic: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await admin.fetchTopicMetadata({ topics: [topic] })
      return
    } catch (error) {
      if (tries === 50) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

/** Values with a number each, in batches, spread over the partitions by key; `make` gives the record of a number. */
export async function produce(
  brokers: string[],
  topic: string,
  records: number,
  make: (index: number) => { key?: string; value: Buffer; headers?: Record<string, string> },
): Promise<void> {
  const batch = 2000
  let turn = 0
  const producer = client(brokers).producer({
    // kafkajs sends a whole request again where one of its partitions is not ready: without this the others hold it twice.
    idempotent: true,
    // Without a key a whole batch to each partition in turn; with one, by the key's number: the same spread at every run.
    createPartitioner:
      () =>
      ({ message }) => {
        const key = message.key == null ? turn : Number(/\d+$/.exec(String(message.key))?.[0] ?? 0)
        return key % PARTITIONS
      },
  })
  await producer.connect()
  try {
    for (let from = 0; from < records; from += batch, turn++) {
      const messages = Array.from({ length: Math.min(batch, records - from) }, (_, at) => make(from + at))
      await producer.send({ topic, messages, acks: -1 })
    }
  } finally {
    await producer.disconnect()
  }
  const written = await count(brokers, topic)
  if (written !== records) throw new Error(`${topic} holds ${written} records, ${records} were to be written`)
}

/** A value that carries a number: what a handler, and a tally, knows a record by. */
export function numbered(index: number, bytes: number): Buffer {
  const value = Buffer.alloc(bytes, 'x')
  value.writeUInt32LE(index)
  return value
}
export const numberOf = (value: Buffer | null): number => value?.readUInt32LE() ?? 0

/** What is wrong with a group's committed offsets, when it has handled all of a topic. */
export async function uncommitted(brokers: string[], groupId: string, topic: string): Promise<string[]> {
  const admin = client(brokers).admin()
  await admin.connect()
  try {
    const ends = new Map((await admin.fetchTopicOffsets(topic)).map(({ partition, high }) => [partition, high]))
    const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] })
    return (
      (committed?.partitions ?? [])
        // A partition that never held a record need not have a commit.
        .filter(
          ({ partition, offset }) =>
            offset !== ends.get(partition) && !(offset === '-1' && ends.get(partition) === '0'),
        )
        .map(({ partition, offset }) => `${topic}/${partition}: committed ${offset}, end ${ends.get(partition)}`)
    )
  } finally {
    await admin.disconnect()
  }
}

/** Everything that a system should have left behind: offsets at the ends, and so many dead letters. */
export async function leftWrong(brokers: string[], trace: Trace, deadLetters = 0): Promise<string[]> {
  const problems: string[] = []
  for (const { topic, groupId } of trace.reads) problems.push(...(await uncommitted(brokers, groupId, topic)))
  if (trace.deadLetters === undefined) return problems
  const found = await count(brokers, trace.deadLetters)
  if (found !== deadLetters) problems.push(`${found} dead letters, ${deadLetters} expected`)
  return problems
}

/** Records that a topic holds. */
async function count(brokers: string[], topic: string): Promise<number> {
  const admin = client(brokers).admin()
  await admin.connect()
  try {
    const ends = await admin.fetchTopicOffsets(topic)
    return Number(ends.reduce((sum, { high, low }) => sum + BigInt(high) - BigInt(low), 0n))
  } finally {
    await admin.disconnect()
  }
}

/** For systems that would print: a benchmark measures the work, not the terminal. */
const nothing = (): void => undefined
export const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing }
