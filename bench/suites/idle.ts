import { setTimeout as sleep } from 'node:timers/promises'
import { client, createTopics } from '../lib/kafka'
import type { Suite } from '../lib/suite'
import type { System, Trace } from '../lib/system'
import { Tally } from '../lib/tally'
import { raw } from '../peers/raw'
import { retryline } from '../peers/retryline'

const SCHEDULE = ['1s', '1m', '10m']
const CONSUMERS = 1 + SCHEDULE.length

const retryTopic = (topic: string, at: number): string => `${topic}.retry.${SCHEDULE[at]}`

/** As many consumers of kafkajs, each alone in its group, as ours has. */
const several =
  (one: System): System =>
  async (job, context) => {
    let joined = 0
    let together = (): void => undefined
    const over = new Promise<void>((resolve) => (together = resolve)).then(() => job.during())
    const during = (): Promise<void> => {
      if (++joined === CONSUMERS) together()
      return over
    }
    const topics = [job.topic, ...SCHEDULE.map((_, at) => retryTopic(job.topic, at))]
    const all = topics.map((topic, at) => one({ ...job, topic, groupId: `${job.groupId}-${at}`, during }, context))
    return (await Promise.all(all))[0] as Trace
  }

const systems: Record<string, System> = {
  retryline: retryline({ schedule: SCHEDULE }),
  [`kafkajs:${CONSUMERS}`]: several(raw({ how: 'eachMessage' })),
  [`kafkajs:${CONSUMERS}-tuned`]: several(raw({ how: 'eachMessage', maxWaitTimeInMs: 200 })),
}

export const suite: Suite = {
  name: 'idle',
  unit: 'ms cpu/s',
  better: 'lower',
  sideBySide: 'all',
  method:
    `A consumer with ${SCHEDULE.length} retry delays, so ${CONSUMERS} consumers of kafkajs, that has nothing to do for 15 s: ` +
    `time on the processor, connections to the broker, and memory. \`kafkajs:${CONSUMERS}\` is as many plain consumers ` +
    'with their defaults (a fetch waits up to 5 s); tuned, they wait 200 ms as ours do. The systems run at the same time.',
  systems: Object.keys(systems) as [string, ...string[]],

  async run(name, context) {
    const system = systems[name]
    if (!system) throw new Error(`there is no system ${name}`)
    const { brokers, small, id } = context
    const topic = `idle-${id}`
    const all = [topic, ...SCHEDULE.map((_, at) => retryTopic(topic, at))]
    await createTopics(brokers, all)
    const tally = new Tally(0)
    let value = NaN
    let figures: Record<string, number> = {}
    const during = async (): Promise<void> => {
      await sleep(small ? 1000 : 4000)
      const [began, before] = [performance.now(), process.cpuUsage()]
      await sleep(small ? 3000 : 15_000)
      const { user, system } = process.cpuUsage(before)
      value = (user + system) / (performance.now() - began)
      const connections = process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
      figures = { connections, 'rss MB': process.memoryUsage.rss() / 1e6 }
    }
    const handle = (): 'done' => {
      tally.saw(0)
      return 'done'
    }
    await system({ kafka: client(brokers), brokers, topic, groupId: topic, delay: 1000, handle, during }, context)
    return { value, figures, counts: tally.counts() }
  },
}
