/** What stories of transactions are told with. */
import type { Admin, ConsumerConfig, Producer, ProducerConfig, Transaction } from 'kafkajs'
import { byPartition, committed, consumerOf, noteEvents, outcome, type Stage } from './stage'

export const SOON = { retries: 1, initialRetryTime: 30 }

export async function transactional(
  stage: Stage,
  id = 'worker',
  { client = stage.kafka, ...config }: ProducerConfig & { client?: Stage['kafka'] } = {},
): Promise<Producer> {
  const transactionalId = stage.group(id)
  const producer = client.producer({
    transactionalId,
    maxInFlightRequests: 1,
    idempotent: true,
    retry: SOON,
    ...config,
  })
  await producer.connect()
  return producer
}

export const begin = (stage: Stage, producer: Producer): Promise<Transaction> =>
  stage.eventually(producer.transaction())

export async function withAdmin<T>(stage: Stage, act: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = stage.kafka.admin()
  await admin.connect()
  try {
    return await act(admin)
  } finally {
    await admin.disconnect()
  }
}

export const positions = (stage: Stage, topic = stage.topic()): Promise<unknown> =>
  withAdmin(stage, async (admin) => byPartition(await admin.fetchTopicOffsets(topic)))

/** The broker answers the end of a transaction before the markers stand: waits until the log ends there. */
export async function marked(stage: Stage, end: number, partition = 0, topic = stage.topic()): Promise<void> {
  await withAdmin(stage, async (admin) => {
    for (let tries = 0; ; tries++) {
      const all = await admin.fetchTopicOffsets(topic)
      if (all.find((one) => one.partition === partition)?.offset === String(end)) return
      if (tries > 300) throw new Error(`the log does not end at ${end}: ${JSON.stringify(all)}`)
      await stage.pass(50)
    }
  })
}

export const commitOf = (stage: Stage, transaction: Transaction): Promise<unknown> =>
  stage.eventually(outcome(transaction.commit()))
export const abortOf = (stage: Stage, transaction: Transaction): Promise<unknown> =>
  stage.eventually(outcome(transaction.abort()))

export const offset = (stage: Stage, at: string, metadata?: string) => ({
  consumerGroupId: stage.group(),
  topics: [
    {
      topic: stage.topic(),
      partitions: [{ partition: 0, offset: at, ...(metadata === undefined ? {} : { metadata }) }],
    },
  ],
})

/** A consumer that only listens, batch by batch, until the log's end; what it saw is noted when it ends. */
export async function read(stage: Stage, name: string, config: Partial<ConsumerConfig> = {}, runConfig: object = {}) {
  const consumer = consumerOf(stage, { groupId: stage.group(name), ...config })
  const seen: unknown[] = []
  const own = { note: (...what: unknown[]) => void seen.push(what) }
  noteEvents(own, consumer, '', ['CONNECT', 'GROUP_JOIN', 'STOP', 'DISCONNECT', 'REBALANCING'])
  let ended = 0
  consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => void (ended = Number(payload.lastOffset) + 1))
  await consumer.connect()
  await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
  await consumer.run({
    ...runConfig,
    eachBatch: async ({ batch }) => {
      own.note(
        batch.messages.map((message) => [message.offset, String(message.value)]),
        [batch.firstOffset(), batch.lastOffset(), batch.highWatermark, batch.offsetLag(), batch.offsetLagLow()],
      )
    },
  })
  return {
    until: async (offset: number) => {
      await stage.until(() => ended >= offset)
      await stage.pass(300)
    },
    end: async () => {
      await consumer.disconnect()
      stage.note(name, seen, await committed(stage, [stage.topic()], stage.group(name)))
    },
  }
}

/** Waits until the group's committed offset of partition 0 is this. */
export async function settled(stage: Stage, offset: string): Promise<void> {
  for (let tries = 0; JSON.stringify(await committed(stage)).includes(`"offset":"${offset}"`) === false; tries++) {
    if (tries > 300) throw new Error(`the committed offset is not ${offset}`)
    await stage.pass(50)
  }
}
