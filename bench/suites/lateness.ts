import { library } from '../lib/library'
import { client, createTopics, PARTITIONS, silent } from '../lib/kafka'
import { percentile, sort } from '../lib/stats'
import type { RunContext, Suite } from '../lib/suite'
import { Tally } from '../lib/tally'

const DELAY = 2000
const PER_SECOND = 10
const DUE = 'x-due-at'

/** `started` is told of each record that starts: which one it is, and when it was due. */
type Runner = (context: RunContext, send: SendAll, started: (index: number, due: number) => void) => Promise<void>
/** Sends all records at an even pace, then waits until all have started or clearly never will. */
type SendAll = (send: (index: number) => Promise<void>) => Promise<void>

const ours: Runner = async (context, sendAll, started) => {
  const { createResilientConsumer, RetryableError } = await library()
  const topic = `lateness-${context.id}`
  await createTopics(context.brokers, [topic])
  const kafka = client(context.brokers)
  const consumer = createResilientConsumer({
    kafka,
    groupId: topic,
    topic,
    schedule: [`${DELAY}ms`],
    topicSetup: 'create',
    logger: silent,
    handler: async ({ message }, { attempt, dueAt }) => {
      if (attempt === 1) throw new RetryableError('again, later')
      started(Number(message.value), Number(dueAt))
    },
  })
  await consumer.start()
  const producer = kafka.producer({ createPartitioner: () => () => 0 })
  await producer.connect()
  await sendAll(async (index) => {
    await producer.send({ topic, messages: [{ value: String(index) }] })
  })
  await producer.disconnect()
  await consumer.stop()
}

/** The well-known way: give an early record back, pause its partition, and resume when it is due. */
const pauseUntilDue =
  (maxWaitTimeInMs: number): Runner =>
  async (context, sendAll, started) => {
    const topic = `lateness-${context.id}`
    await createTopics(context.brokers, [topic])
    const kafka = client(context.brokers)
    const consumer = kafka.consumer({ groupId: topic, maxWaitTimeInMs })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve))
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        const due = Number(message.headers?.[DUE])
        const left = due - Date.now()
        if (left <= 0) return started(Number(message.value), due)
        const here = [{ topic, partitions: [partition] }]
        consumer.pause(here)
        setTimeout(() => consumer.resume(here), left)
        consumer.seek({ topic, partition, offset: message.offset })
      },
    })
    await joined
    let next = 0
    const producer = kafka.producer({ createPartitioner: () => () => next++ % PARTITIONS })
    await producer.connect()
    await sendAll(async (index) => {
      const headers = { [DUE]: String(Date.now() + DELAY) }
      await producer.send({ topic, messages: [{ value: String(index), headers }] })
    })
    await producer.disconnect()
    await consumer.disconnect()
  }

const runners: Record<string, Runner> = {
  retryline: ours,
  'pause-until-due': pauseUntilDue(5000),
  'pause-until-due-tuned': pauseUntilDue(200),
}

export const suite: Suite = {
  name: 'lateness',
  unit: 'ms late',
  better: 'lower',
  method:
    `${PER_SECOND} records a second, each due ${DELAY} ms later: when its handler starts, less \`${DUE}\`; the value of a run ` +
    "is its median. Peers pause the partition until the record is due, with kafkajs's own fetch wait (5 s) and, " +
    'tuned, with a short one (200 ms).',
  systems: ['retryline', 'pause-until-due', 'pause-until-due-tuned'],

  async run(system, context) {
    const run = runners[system]
    if (!run) throw new Error(`there is no system ${system}`)
    const records = PER_SECOND * (context.small ? 2 : 10)
    const tally = new Tally(records)
    const late: number[] = []
    const started = (index: number, due: number): void => {
      const lateness = Date.now() - due
      late.push(lateness)
      tally.saw(index, lateness < 0)
    }
    const sendAll: SendAll = async (send) => {
      const began = performance.now()
      for (let index = 0; index < records; index++) {
        const wait = began + (index * 1000) / PER_SECOND - performance.now()
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
        await send(index)
      }
      await tally.complete(DELAY + 20_000)
    }
    await run(context, sendAll, started)
    const sorted = sort(late)
    const figures = { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), max: sorted.at(-1) ?? NaN }
    return { value: figures.p50, figures, counts: tally.counts() }
  },
}
