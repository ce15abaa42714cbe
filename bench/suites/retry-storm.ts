import { jvm, prepareRun, spring, systems, type Own } from '../lib/failing'
import { client, leftWrong, numberOf, PARTITIONS } from '../lib/kafka'
import { percentile, sort } from '../lib/stats'
import type { Suite } from '../lib/suite'
import { Tally } from '../lib/tally'

const DELAY = 1000
const PATIENCE = 120_000

const latenessOf = (sorted: readonly number[]): Record<string, number> => ({
  p50: percentile(sorted, 0.5),
  p99: percentile(sorted, 0.99),
  latest: sorted.at(-1) ?? NaN,
})

export const suite: Suite = {
  name: 'retry-storm',
  unit: 's',
  better: 'lower',
  method:
    `20,000 records on ${PARTITIONS} partitions that wait when the consumer starts; each fails at its first attempt, and is ` +
    `due ${DELAY} ms later: seconds from the first call of the handler to the last, the delay included. p50, p99 and max ` +
    'say how many ms after its due time the second attempt began. That all is committed, on the retry topic too, and ' +
    'that nothing is a dead letter, is checked.',
  systems: Object.keys(systems) as [string, ...string[]],

  jvm,

  prepareRun: prepareRun('storm', { small: 1000, whole: 20_000 }),

  async run(name, context) {
    const { topic, records } = context.own as Own
    const sprung = await spring(name, context, { warmUp: 0, fails: 'once', delay: DELAY })
    if (sprung) {
      const { late = [], ...measured } = sprung
      return { ...measured, figures: latenessOf(late) }
    }
    const run = systems[name]
    if (!run) throw new Error(`there is no system ${name}`)
    const first = new Tally(records)
    const second = new Tally(records)
    const late: number[] = []
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
      handle: (value: Buffer | null, attempt: number, due: number | undefined) => {
        if (attempt === 1) {
          if (began === 0) {
            began = performance.now()
            before = process.cpuUsage()
          }
          first.saw(numberOf(value))
          return 'again' as const
        }
        const lateness = Date.now() - (due ?? NaN)
        late.push(lateness)
        second.saw(numberOf(value), lateness < 0)
        ended = performance.now()
        if (late.length === records) spent = process.cpuUsage(before)
        return 'done' as const
      },
      during: () => second.complete(PATIENCE),
    }
    const trace = await run(job, context)
    const problems = await leftWrong(context.brokers, trace)
    const counts = second.counts(problems)
    counts.duplicated += first.counts().duplicated
    return {
      value: (ended - began) / 1000,
      figures: { ...latenessOf(sort(late)), 'cpu µs/record': (spent.user + spent.system) / records },
      counts,
    }
  },
}
