import { setTimeout as sleep } from 'node:timers/promises'
import { client, createTopics, numbered, numberOf, produce, PARTITIONS, uncommitted } from '../lib/kafka'
import { library } from '../lib/library'
import type { Suite } from '../lib/suite'
import type { Job, System } from '../lib/system'
import { Tally } from '../lib/tally'
import { raw } from '../peers/raw'
import { retryline } from '../peers/retryline'

const SCHEDULE = ['1s', '1m', '10m']
const WAIT = 5
const PATIENCE = 60_000

const systems: Record<string, System> = {
  retryline: retryline({ schedule: SCHEDULE, topicSetup: 'verify' }),
  eachMessage: raw({ how: 'eachMessage' }),
}

interface Own {
  idle: string
  loaded: string
  records: number
}

/** Makes our retry topics as they must be: to make them is no part of a start. */
const makeTopics = retryline({ schedule: SCHEDULE })

export const suite: Suite = {
  name: 'start-stop',
  unit: 'ms',
  better: 'lower',
  method:
    `From the start of a consumer with ${SCHEDULE.length} retry delays, whose topics exist and hold records on ${PARTITIONS} ` +
    'partitions, to the first call of its handler; then how long it takes to stop after a second without a record ' +
    `(\`idle stop\`), and, a second after another start, with a handler that waits ${WAIT} ms and much left to do ` +
    '(`loaded stop`). A third start handles the rest: what it handles again is doubled. The peer is one plain ' +
    'consumer of kafkajs.',
  systems: Object.keys(systems) as [string, ...string[]],

  async prepareRun(system, context): Promise<Own> {
    const { brokers, small, id } = context
    const own = { idle: `start-idle-${id}`, loaded: `start-loaded-${id}`, records: small ? 1200 : 6000 }
    for (const topic of [own.idle, own.loaded]) {
      await createTopics(brokers, [topic])
      if (system === 'retryline') {
        const job = { kafka: client(brokers), brokers, topic, groupId: `${topic}-setup`, delay: 1000 }
        await makeTopics({ ...job, handle: () => 'done', during: () => Promise.resolve() }, context)
      }
      await produce(brokers, topic, own.records, (index) => ({ key: `key-${index}`, value: numbered(index, 200) }))
    }
    return own
  },

  async run(name, context) {
    const system = systems[name]
    if (!system) throw new Error(`there is no system ${name}`)
    const { brokers } = context
    const { idle, loaded, records } = context.own as Own
    /** Runs the system, and returns how long its stop took. */
    const round = async (topic: string, handle: Job['handle'], during: () => Promise<void>): Promise<number> => {
      let stopping = 0
      const kafka = client(brokers)
      const until = async (): Promise<void> => {
        await during()
        stopping = performance.now()
      }
      await system({ kafka, brokers, topic, groupId: `${topic}-group`, delay: 1000, handle, during: until }, context)
      return performance.now() - stopping
    }

    // kafkajs is loaded by now: to load ours is no part of a start either.
    if (name === 'retryline') await library()
    const first = new Tally(records)
    let began = NaN
    const started = performance.now()
    const idleStop = await round(
      idle,
      (value) => {
        if (first.calls === 0) began = performance.now()
        first.saw(numberOf(value))
        return 'done'
      },
      async () => {
        await first.complete(PATIENCE)
        await sleep(1000)
      },
    )

    const second = new Tally(records)
    const slowly: Job['handle'] = (value) =>
      new Promise((resolve) => {
        setTimeout(() => {
          second.saw(numberOf(value))
          resolve('done')
        }, WAIT)
      })
    const loadedStop = await round(loaded, slowly, () => sleep(1000))
    const quickly: Job['handle'] = (value) => {
      second.saw(numberOf(value))
      return 'done'
    }
    await round(loaded, quickly, () => second.complete(PATIENCE))

    const problems = [idle, loaded].map((topic) => uncommitted(brokers, `${topic}-group`, topic))
    const counts = second.counts((await Promise.all(problems)).flat())
    const before = first.counts()
    counts.expected += before.expected
    counts.lost += before.lost
    counts.duplicated += before.duplicated
    return { value: began - started, figures: { 'idle stop': idleStop, 'loaded stop': loadedStop }, counts }
  },
}
