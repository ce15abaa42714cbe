import type { EachBatchPayload, Kafka } from 'kafkajs'
import { createTopics, client, PARTITIONS, silent, uncommitted } from '../lib/kafka'
import type { RunContext, Suite } from '../lib/suite'
import { library } from '../lib/library'
import { Tally } from '../lib/tally'

const BYTES = 200
const PATIENCE = 120_000
/** kafkajs's own default of 5 s would only lengthen the last fetch; ours sets the same. */
const MAX_WAIT = 200

interface Prepared {
  topic: string
  records: number
  /** Records before the clock starts: the join, the first fetches and the JIT are not what is asked. A consumer runs for days. */
  warmUp: number
}

interface Consumption {
  groupId: string
  handle(value: Buffer | null): void
  finished: Promise<void>
}

type Runner = (kafka: Kafka, topic: string, consumption: Consumption) => Promise<void>

/** Raw kafkajs with its defaults: it commits at the end of each batch by itself. */
const raw =
  (how: 'eachBatch' | 'eachMessage'): Runner =>
  async (kafka, topic, { groupId, handle, finished }) => {
    const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: MAX_WAIT })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    const eachBatch = async ({ batch }: EachBatchPayload): Promise<void> => {
      for (const message of batch.messages) handle(message.value)
    }
    await consumer.run(
      how === 'eachBatch' ? { eachBatch } : { eachMessage: async ({ message }) => handle(message.value) },
    )
    await finished
    await consumer.stop()
    await consumer.disconnect()
  }

const ours: Runner = async (kafka, topic, { groupId, handle, finished }) => {
  const { createResilientConsumer } = await library()
  const consumer = createResilientConsumer({
    kafka,
    groupId,
    topic,
    schedule: ['1m'],
    topicSetup: 'create',
    logger: silent,
    handler: async ({ message }) => handle(message.value),
  })
  await consumer.start()
  await finished
  await consumer.stop()
}

const runners: Record<string, Runner> = {
  retryline: ours,
  eachBatch: raw('eachBatch'),
  eachMessage: raw('eachMessage'),
}

export const suite: Suite = {
  name: 'passthrough',
  unit: 'records/s',
  better: 'higher',
  method:
    `Records of ${BYTES} bytes on ${PARTITIONS} partitions, a handler that only counts, no failure: what the library costs ` +
    'when it has nothing to do. Peers are plain kafkajs consumers with their defaults. At the end every committed offset ' +
    'is compared with the end of its partition.',
  systems: ['retryline', 'eachBatch', 'eachMessage'],

  async prepare({ brokers, small, id }): Promise<Prepared> {
    const records = small ? 60_000 : 1_200_000
    const topic = `passthrough-${id}`
    await createTopics(brokers, [topic])
    let partition = 0
    const producer = client(brokers).producer({ idempotent: true, createPartitioner: () => () => partition })
    await producer.connect()
    const batch = 2000
    for (let from = 0; from < records; from += batch) {
      partition = (from / batch) % PARTITIONS
      const messages = Array.from({ length: Math.min(batch, records - from) }, (_, at) => {
        const value = Buffer.alloc(BYTES, 'x')
        value.writeUInt32LE(from + at)
        return { key: `key-${(from + at) % 1000}`, value }
      })
      await producer.send({ topic, messages, acks: -1 })
    }
    await producer.disconnect()
    return { topic, records, warmUp: small ? 2000 : 200_000 }
  },

  async run(system, context: RunContext) {
    const { topic, records, warmUp } = context.prepared as Prepared
    const run = runners[system]
    if (!run) throw new Error(`there is no system ${system}`)
    const tally = new Tally(records)
    const groupId = `passthrough-${system}-${context.id}`
    let began = 0
    let ended = 0
    // Time on the processor says more than the clock where something else runs on the machine.
    let before = process.cpuUsage()
    let spent = before
    const handle = (value: Buffer | null): void => {
      tally.saw(value?.readUInt32LE() ?? 0)
      if (tally.calls === warmUp) {
        began = performance.now()
        before = process.cpuUsage()
      }
      if (tally.calls === records) {
        ended = performance.now()
        spent = process.cpuUsage(before)
      }
    }
    const finished = tally.complete(PATIENCE)
    await run(client(context.brokers), topic, { groupId, handle, finished })
    const value = (records - warmUp) / ((ended - began) / 1000)
    const figures = { 'cpu µs/record': (spent.user + spent.system) / (records - warmUp) }
    return { value, figures, counts: tally.counts(await uncommitted(context.brokers, groupId, topic)) }
  },
}
