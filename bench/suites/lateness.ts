import { client, createTopics, joined, leftWrong, numbered, numberOf, PARTITIONS } from '../lib/kafka'
import { percentile, sort } from '../lib/stats'
import type { Suite } from '../lib/suite'
import type { Outcome, System } from '../lib/system'
import { Tally } from '../lib/tally'
import { asyncRetry } from '../peers/async-retry'
import { naive } from '../peers/naive'
import { retryline } from '../peers/retryline'

const DELAY = 2000
const PER_SECOND = 10
const DUE = 'due-at'

/** The well-known way: give an early record back, pause its partition, and resume when it is due. */
const pauseUntilDue =
  (maxWaitTimeInMs: number): System =>
  async ({ kafka, topic, groupId, handle, during }) => {
    const consumer = kafka.consumer({ groupId, maxWaitTimeInMs })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    const ready = joined(consumer)
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        const due = Number(message.headers?.[DUE])
        const left = due - Date.now()
        if (left <= 0) {
          await handle(message.value, 2, due)
          return
        }
        const here = [{ topic, partitions: [partition] }]
        consumer.pause(here)
        setTimeout(() => consumer.resume(here), left)
        consumer.seek({ topic, partition, offset: message.offset })
      },
    })
    await ready
    await during()
    await consumer.disconnect()
    return { reads: [] }
  }

const systems: Record<string, System> = {
  retryline: retryline(),
  naive,
  'kafkajs-async-retry': asyncRetry,
  'pause-until-due': pauseUntilDue(5000),
  'pause-until-due-tuned': pauseUntilDue(200),
}

export const suite: Suite = {
  name: 'lateness',
  unit: 'ms late',
  better: 'lower',
  sideBySide: 'peers',
  // The clock tells whole ms.
  least: 1,
  method:
    `${PER_SECOND} records a second, each due ${DELAY} ms later: when its handler starts, less when it was due; the value of ` +
    'a run is its median. Ours, `naive` and `kafkajs-async-retry` fail each record once. `pause-until-due` is only the ' +
    "second half of that: its records come with their due time, and it pauses the partition until then, with kafkajs's " +
    'own fetch wait (5 s) and, tuned, with a short one (200 ms). Commits of all but those two are checked. A ratio takes 0 ms for 1.',
  systems: Object.keys(systems) as [string, ...string[]],

  async run(system, context) {
    const run = systems[system]
    if (!run) throw new Error(`there is no system ${system}`)
    const records = PER_SECOND * (context.small ? 2 : 10)
    const topic = `lateness-${context.id}`
    await createTopics(context.brokers, [topic])
    const kafka = client(context.brokers)
    const tally = new Tally(records)
    const late: number[] = []
    const during = async (): Promise<void> => {
      let next = 0
      const producer = kafka.producer({ createPartitioner: () => () => next++ % PARTITIONS })
      await producer.connect()
      const began = performance.now()
      for (let index = 0; index < records; index++) {
        const wait = began + (index * 1000) / PER_SECOND - performance.now()
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
        const headers = { [DUE]: String(Date.now() + DELAY) }
        await producer.send({ topic, messages: [{ value: numbered(index, 200), headers }] })
      }
      await tally.complete(DELAY + 20_000)
      await producer.disconnect()
    }
    const handle = (value: Buffer | null, attempt: number, due: number | undefined): Outcome => {
      if (attempt === 1) return 'again'
      const lateness = Date.now() - (due ?? NaN)
      late.push(lateness)
      tally.saw(numberOf(value), lateness < 0)
      return 'done'
    }
    const { brokers } = context
    const trace = await run({ kafka, brokers, topic, groupId: topic, delay: DELAY, handle, during }, context)
    const sorted = sort(late)
    const figures = { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), max: sorted.at(-1) ?? NaN }
    return { value: figures.p50, figures, counts: tally.counts(await leftWrong(brokers, trace)) }
  },
}
