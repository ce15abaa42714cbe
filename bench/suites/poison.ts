import { client, createTopics, leftWrong, numbered, numberOf, PARTITIONS, produce } from '../lib/kafka'
import { runJvm, springTrace } from '../lib/jvm'
import type { Measurement, RunContext, Suite } from '../lib/suite'
import type { System } from '../lib/system'
import { Tally } from '../lib/tally'
import { asyncRetry } from '../peers/async-retry'
import { naive } from '../peers/naive'
import { retryline } from '../peers/retryline'

const PATIENCE = 120_000
/** One record in so many is bad. */
const ONE_IN = 100

const systems: Record<string, System> = { retryline: retryline(), naive, 'kafkajs-async-retry': asyncRetry }

interface Own {
  topic: string
  records: number
}

async function spring({ brokers, own }: RunContext): Promise<Measurement> {
  const { topic, records } = own as Own
  const args = [brokers.join(), topic, topic, records, records / 10, ONE_IN, 1000]
  const { value, late: _late, ...counts } = await runJvm('Spring', args)
  const problems = await leftWrong(brokers, springTrace(topic), records / ONE_IN)
  return { value, counts: { expected: records, ...counts, problems } }
}

export const suite: Suite = {
  name: 'poison',
  unit: 'records/s',
  better: 'higher',
  method:
    `200,000 records on ${PARTITIONS} partitions, one in ${ONE_IN} of which no retry can help: it goes to the dead letter ` +
    'topic. The handler only counts. The first tenth is not timed. That the dead letters are as many as there should be, ' +
    'and that all is committed, is checked.',
  systems: Object.keys(systems) as [string, ...string[]],

  jvm: ['spring'],

  async prepareRun(_system, { brokers, small, id }): Promise<Own> {
    const topic = `poison-${id}`
    const records = small ? 10_000 : 200_000
    await createTopics(brokers, [topic])
    // A key for each record: the bad ones are spread over all partitions.
    await produce(brokers, topic, records, (index) => ({ key: `key-${index}`, value: numbered(index, 200) }))
    return { topic, records }
  },

  async run(name, context) {
    if (name === 'spring') return spring(context)
    const run = systems[name]
    if (!run) throw new Error(`there is no system ${name}`)
    const { topic, records } = context.own as Own
    const warmUp = records / 10
    const tally = new Tally(records)
    let began = 0
    let ended = 0
    let before = process.cpuUsage()
    let spent = before
    const job = {
      kafka: client(context.brokers),
      brokers: context.brokers,
      topic,
      groupId: topic,
      delay: 1000,
      handle: (value: Buffer | null) => {
        const index = numberOf(value)
        tally.saw(index)
        if (tally.calls === warmUp) {
          began = performance.now()
          before = process.cpuUsage()
        }
        if (tally.calls === records) {
          ended = performance.now()
          spent = process.cpuUsage(before)
        }
        return index % ONE_IN === 0 ? ('bad' as const) : ('done' as const)
      },
      during: () => tally.complete(PATIENCE),
    }
    const trace = await run(job, context)
    const problems = await leftWrong(context.brokers, trace, records / ONE_IN)
    return {
      value: (records - warmUp) / ((ended - began) / 1000),
      figures: { 'cpu µs/record': (spent.user + spent.system) / (records - warmUp) },
      counts: tally.counts(problems),
    }
  },
}
