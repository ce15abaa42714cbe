import { consumerOf, type Stage, type Story } from './stage'

const HOUR = 3_600_000

/** One batch for each message, so that each may begin a segment. */
async function write(stage: Stage, topic: string, messages: { key?: string; value: string | null; age: number }[]) {
  const producer = stage.kafka.producer()
  await producer.connect()
  const now = stage.now()
  for (const { age, ...message } of messages) {
    await producer.send({ topic, messages: [{ ...message, timestamp: String(now - age) }] })
  }
  await producer.disconnect()
}

async function noteEnds(stage: Stage, ...topics: string[]): Promise<void> {
  const admin = stage.kafka.admin()
  await admin.connect()
  for (const topic of topics) stage.note(topic, await admin.fetchTopicOffsets(topic))
  await admin.disconnect()
}

/** What a new group is given of a topic, up to a last offset. */
async function noteRecords(stage: Stage, topic: string, group: string, last: number): Promise<void> {
  const consumer = consumerOf(stage, { groupId: stage.group(group) })
  const seen: string[] = []
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ message: { offset, key, value } }) =>
      void seen.push(`${offset}: ${String(key)}=${String(value)}`),
  })
  await stage.until(() => seen.some((one) => one.startsWith(`${last}:`)))
  stage.note('records', seen)
  await consumer.disconnect()
}

export const logStories: Record<string, Story> = {
  'retention: what is too old goes by segments, with trap 10 (a copied old time stamp)': async (stage) => {
    const retention = { 'retention.ms': String(HOUR / 6) }
    await stage.create('alone', 1, retention)
    await stage.create('mixed', 1, retention)
    await stage.create('parted', 1, { ...retention, 'segment.ms': '1000' })
    await stage.create('arrival', 1, { ...retention, 'message.timestamp.type': 'LogAppendTime' })
    const topics = ['alone', 'mixed', 'parted', 'arrival'].map((name) => stage.topic(name))
    for (const topic of topics) await write(stage, topic, [{ value: 'old', age: HOUR }])
    for (const topic of topics.slice(1, 3)) await write(stage, topic, [{ value: 'new', age: 0 }])
    await stage.pass(4000)
    await noteEnds(stage, ...topics)
  },

  'compaction: the last of each key stays, the last segment is left alone, a tombstone goes with a later one': async (
    stage,
  ) => {
    await stage.create('orders', 1, {
      'cleanup.policy': 'compact',
      'segment.ms': '500',
      'min.cleanable.dirty.ratio': '0.01',
      'delete.retention.ms': '100',
    })
    const topic = stage.topic()
    await write(
      stage,
      topic,
      ['a', 'b', 'a', 'c', 'b'].map((key, i) => ({ key, value: String(i), age: 60_000 - i * 1000 })),
    )
    await write(stage, topic, [
      { key: 'c', value: null, age: 50_000 },
      { key: 'last', value: '6', age: 49_000 },
      { key: 'last', value: '7', age: 48_000 },
    ])
    await stage.pass(5000)
    await noteRecords(stage, topic, 'first', 7)
    await write(stage, topic, [
      { key: 'a', value: '8', age: 40_000 },
      { key: 'last', value: '9', age: 39_000 },
    ])
    await stage.pass(5000)
    await noteRecords(stage, topic, 'second', 9)
    await noteEnds(stage, topic)
  },
}
