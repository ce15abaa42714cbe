import { setTimeout as sleep } from 'node:timers/promises'
import { client, createTopics, leftWrong, numbered, numberOf, PARTITIONS, produce } from '../lib/kafka'
import type { RunContext, Suite } from '../lib/suite'
import type { Outcome, System } from '../lib/system'
import { Tally } from '../lib/tally'
import { raw } from '../peers/raw'
import { retryline } from '../peers/retryline'

const TIER = '1h'
const PATIENCE = 300_000
const MB = 1e6

/** Ours with the records on its retry topic; and, as what there is to compare with, the same records on a main topic. */
const systems: Record<string, { run: System; waits: boolean }> = {
  retryline: { run: retryline({ schedule: [TIER] }), waits: true },
  'retryline:main': { run: retryline({ schedule: [TIER] }), waits: false },
  eachBatch: { run: raw({ how: 'eachBatch' }), waits: false },
}

interface Prepared {
  /** Holds the records for those that do not wait. */
  main: string
  records: number
  fillMs: number
}

interface Own {
  topic: string
  /** ms since the epoch. */
  due: number
}

/** As the consumer writes them when the first attempt has failed; the same for all of a partition, which are written faster. */
const headersOf = (topic: string, partition: number, due: number): Record<string, string> => {
  const failed = new Date(due - 60_000).toISOString()
  return {
    'x-attempt': '2',
    'x-due-at': String(due),
    'x-original-topic': topic,
    'x-original-partition': String(partition),
    'x-original-offset': String(100_000 + partition),
    'x-original-timestamp': String(due - 120_000),
    'x-consumer-group': topic,
    'x-first-failed-at': failed,
    'x-last-failed-at': failed,
    'x-error-class': 'RetryableError',
    'x-error': 'again, later',
  }
}

function fill(brokers: string[], target: string, topic: string, records: number, due: number): Promise<void> {
  const headers = Array.from({ length: PARTITIONS }, (_, partition) => headersOf(topic, partition, due))
  return produce(brokers, target, records, (index) => ({
    key: `key-${index}`,
    value: numbered(index, 200),
    headers: headers[index % PARTITIONS] ?? {},
  }))
}

export const suite: Suite = {
  name: 'backlog',
  unit: 'records/s',
  better: 'higher',
  method:
    `1,000,000 records that wait on a retry topic (${TIER}), all due at the same moment: the rate from then on (the first ` +
    'tenth is not timed). `MB waiting` is the most memory of the process (RSS) while they wait, above that of the same ' +
    'consumer on empty topics; `ms late` is when the first record started, after the moment. `retryline:main` and ' +
    '`eachBatch` read the same records, with the same headers, from a main topic without a wait.',
  systems: Object.keys(systems) as [string, ...string[]],

  async prepare({ brokers, small, id }): Promise<Prepared> {
    const records = small ? 6000 : 1_000_000
    const main = `backlog-${id}`
    // The retry topic too: two systems may start side by side.
    await createTopics(brokers, [main, `${main}.retry.${TIER}`, `${main}.dlq`])
    const began = Date.now()
    await fill(brokers, main, main, records, began)
    return { main, records, fillMs: Date.now() - began }
  },

  async prepareRun(name, { brokers, small, id, prepared }): Promise<Own> {
    const { main, records, fillMs } = prepared as Prepared
    if (systems[name]?.waits !== true) return { topic: main, due: 0 }
    const topic = `backlog-waits-${id}`
    await createTopics(brokers, [topic, `${topic}.retry.${TIER}`, `${topic}-empty`])
    // How long it took to write as many decides when they are due: well after the consumer stands and waits.
    const due = Math.round(Date.now() + fillMs * 1.3 + (small ? 5000 : 22_000))
    await fill(brokers, `${topic}.retry.${TIER}`, topic, records, due)
    return { topic, due }
  },

  async run(name, context: RunContext) {
    const system = systems[name]
    if (!system) throw new Error(`there is no system ${name}`)
    const { brokers, small } = context
    const { topic, due } = context.own as Own
    const { records } = context.prepared as Prepared
    const groupId = system.waits ? topic : `${topic}-${context.id}`
    const job = { kafka: client(brokers), brokers, topic, groupId, delay: 1000 }
    const figures: Record<string, number> = {}
    if (system.waits) {
      const empty = `${topic}-empty`
      let rss = 0
      const during = async (): Promise<void> => {
        rss = await mostMemory(Date.now() + (small ? 1000 : 3000))
      }
      await system.run({ ...job, topic: empty, groupId: empty, handle: () => 'done', during }, context)
      figures['MB waiting'] = -rss / MB
    }

    const tally = new Tally(records)
    const warmUp = records / 10
    let began = 0
    let ended = 0
    const problems: string[] = []
    const handle = (value: Buffer | null, _attempt: number, dueAt: number | undefined): Outcome => {
      if (tally.calls === 0 && system.waits) figures['ms late'] = Date.now() - due
      // A clock is read for one in sixteen: to look at all would be a part of what is measured.
      const early = system.waits && (dueAt !== due || ((tally.calls & 15) === 0 && Date.now() < due))
      tally.saw(numberOf(value), early)
      if (tally.calls === warmUp) began = performance.now()
      if (tally.calls === records) ended = performance.now()
      return 'done'
    }
    const during = async (): Promise<void> => {
      if (system.waits) {
        if (!small && due - Date.now() < 6000) problems.push('due before the consumer had waited for long')
        figures['MB waiting'] = (figures['MB waiting'] ?? NaN) + (await mostMemory(due)) / MB
      }
      await tally.complete(PATIENCE)
    }
    await system.run({ ...job, handle, during }, context)
    const reads = [{ topic, groupId }]
    if (system.waits) reads.push({ topic: `${topic}.retry.${TIER}`, groupId: `${topic}.retry.${TIER}` })
    problems.push(...(await leftWrong(brokers, { reads })))
    const value = (records - warmUp) / ((ended - began) / 1000)
    return { value, figures, counts: tally.counts(problems) }
  },
}

/** The largest resident set that is seen until then, bytes. */
async function mostMemory(until: number): Promise<number> {
  let most = 0
  for (let now = Date.now(); now < until; now = Date.now()) {
    most = Math.max(most, process.memoryUsage.rss())
    await sleep(Math.min(100, until - now))
  }
  return most
}
