import { client, createTopics, leftWrong, numbered, numberOf, PARTITIONS, produce, uncommitted } from '../lib/kafka'
import { runJvm } from '../lib/jvm'
import type { Measurement, RunContext, Suite } from '../lib/suite'
import type { System } from '../lib/system'
import { Tally } from '../lib/tally'
import { raw } from '../peers/raw'
import { retryline } from '../peers/retryline'

const WAIT = 5
const KEYS = 1000
const CONCURRENCY = 100
const PATIENCE = 180_000

/** What may not run at the same time, and not out of order: records of one key, or of one partition, or nothing. */
type Order = 'key' | 'partition' | 'none'
/** How many records suit a system's pace, so that each takes some seconds. */
type Pace = 'slow' | 'middle' | 'fast'

const systems: Record<string, { run: System; order: Order; pace: Pace }> = {
  'retryline:key': { run: retryline({ ordering: 'key', concurrency: CONCURRENCY }), order: 'key', pace: 'fast' },
  'retryline:unordered': {
    run: retryline({ ordering: 'unordered', concurrency: CONCURRENCY }),
    order: 'none',
    pace: 'fast',
  },
  'retryline:partition': { run: retryline(), order: 'partition', pace: 'middle' },
  eachMessage: { run: raw({ how: 'eachMessage' }), order: 'partition', pace: 'slow' },
  [`eachMessage:${PARTITIONS}`]: {
    run: raw({ how: 'eachMessage', partitionsConsumedConcurrently: PARTITIONS }),
    order: 'partition',
    pace: 'middle',
  },
}

type Prepared = Record<Pace, { topic: string; records: number }>

const laneOf: Record<Order, (index: number) => number> = {
  key: (index) => index % KEYS,
  partition: (index) => (index % KEYS) % PARTITIONS,
  none: (index) => index,
}

/** Sees to it that what may not overlap does not, and that no record comes after a later one. */
class Watch {
  readonly #busy = new Set<number>()
  readonly #last = new Map<number, number>()
  #overlaps = 0
  #disorder = 0

  constructor(readonly order: Order) {}

  started(index: number): void {
    const lane = laneOf[this.order](index)
    if (this.#busy.has(lane)) this.#overlaps++
    this.#busy.add(lane)
    if (index <= (this.#last.get(lane) ?? -1)) this.#disorder++
    this.#last.set(lane, index)
  }

  ended(index: number): void {
    this.#busy.delete(laneOf[this.order](index))
  }

  get problems(): string[] {
    const found = { 'handled at the same time': this.#overlaps, 'handled out of order': this.#disorder }
    return Object.entries(found)
      .filter(([, times]) => times > 0)
      .map(([what, times]) => `${times} records of one ${this.order} ${what}`)
  }
}

async function parallelConsumer({ brokers, prepared, id }: RunContext): Promise<Measurement> {
  const { topic, records } = (prepared as Prepared).fast
  const groupId = `io-parallel-${id}`
  const limits = [records, Math.floor(records / 10), WAIT, CONCURRENCY]
  const { value, fetch, ...counts } = await runJvm('Parallel', [brokers.join(), topic, groupId, ...limits])
  const problems = await uncommitted(brokers, groupId, topic)
  return { value, fetch, counts: { expected: records, ...counts, problems } }
}

export const suite: Suite = {
  name: 'io',
  unit: 'records/s',
  better: 'higher',
  method:
    `A handler that waits ${WAIT} ms, ${KEYS} keys on ${PARTITIONS} partitions, in each order that we have: with ` +
    `\`key\` and \`unordered\` ${CONCURRENCY} handlers at once (so ${(CONCURRENCY * 1000) / WAIT} a second is the limit), ` +
    `with \`partition\` one for each partition. \`eachMessage\` is kafkajs as it comes, \`eachMessage:${PARTITIONS}\` with ` +
    `\`partitionsConsumedConcurrently: ${PARTITIONS}\`. That the order was kept, and all committed, is checked. The first ` +
    'tenth of the records is not timed.',
  systems: Object.keys(systems) as [string, ...string[]],

  jvm: ['parallel-consumer'],

  async prepare({ brokers, small, id }): Promise<Prepared> {
    const sizes: Record<Pace, number> = small
      ? { slow: 200, middle: 1000, fast: 6000 }
      : { slow: 1000, middle: 6000, fast: 120_000 }
    const prepared: Partial<Prepared> = {}
    for (const [pace, records] of Object.entries(sizes)) {
      const topic = `io-${pace}-${id}`
      // Ours shares these between its orders, and they may run side by side.
      await createTopics(brokers, [topic, `${topic}.retry.1s`, `${topic}.dlq`])
      await produce(brokers, topic, records, (index) => ({ key: `key-${index % KEYS}`, value: numbered(index, 200) }))
      prepared[pace as Pace] = { topic, records }
    }
    return prepared as Prepared
  },

  async run(name, context: RunContext) {
    if (name === 'parallel-consumer') return parallelConsumer(context)
    const system = systems[name]
    if (!system) throw new Error(`there is no system ${name}`)
    const { topic, records } = (context.prepared as Prepared)[system.pace]
    const warmUp = Math.floor(records / 10)
    const tally = new Tally(records)
    const watch = new Watch(system.order)
    let began = 0
    let ended = 0
    let before = process.cpuUsage()
    let spent = before
    const job = {
      kafka: client(context.brokers),
      brokers: context.brokers,
      topic,
      groupId: `io-${name.replace(':', '-')}-${context.id}`,
      delay: 1000,
      handle: (value: Buffer | null) =>
        new Promise<'done'>((resolve) => {
          const index = numberOf(value)
          watch.started(index)
          setTimeout(() => {
            watch.ended(index)
            tally.saw(index)
            if (tally.calls === warmUp) {
              began = performance.now()
              before = process.cpuUsage()
            }
            if (tally.calls === records) {
              ended = performance.now()
              spent = process.cpuUsage(before)
            }
            resolve('done')
          }, WAIT)
        }),
      during: () => tally.complete(PATIENCE),
    }
    const trace = await system.run(job, context)
    const counted = records - warmUp
    const problems = [...watch.problems, ...(await leftWrong(context.brokers, trace))]
    return {
      value: counted / ((ended - began) / 1000),
      figures: { 'cpu µs/record': (spent.user + spent.system) / counted },
      counts: tally.counts(problems),
    }
  },
}
