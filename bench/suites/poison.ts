import { jvm, prepareRun, spring, systems, type Own } from '../lib/failing'
import { client, leftWrong, numberOf, PARTITIONS } from '../lib/kafka'
import type { Suite } from '../lib/suite'
import { Tally } from '../lib/tally'

const DELAY = 1000
const PATIENCE = 120_000
/** One record in so many is bad. */
const ONE_IN = 100

export const suite: Suite = {
  name: 'poison',
  unit: 'records/s',
  better: 'higher',
  method:
    `200,000 records on ${PARTITIONS} partitions, one in ${ONE_IN} of which no retry can help: it goes to the dead letter ` +
    'topic. The handler only counts. The first tenth is not timed. That the dead letters are as many as there should be, ' +
    'and that all is committed, is checked.',
  systems: Object.keys(systems) as [string, ...string[]],

  jvm,

  prepareRun: prepareRun('poison', { small: 10_000, whole: 200_000 }),

  async run(name, context) {
    const { topic, records } = context.own as Own
    const ofSpring = { warmUp: records / 10, fails: ONE_IN, delay: DELAY, deadLetters: records / ONE_IN }
    const sprung = await spring(name, context, ofSpring)
    if (sprung) return { value: sprung.value, fetch: sprung.fetch, counts: sprung.counts }
    const run = systems[name]
    if (!run) throw new Error(`there is no system ${name}`)
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
      delay: DELAY,
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
