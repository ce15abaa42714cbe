/**
 * The scenario of the promises: members of one group on a main topic, two tiers and a dead letter topic come, go, crash
 * and are killed while records of every fate flow and requests are held, refused and lost.
 */
import { createResilientConsumer, NonRetryableError, RetryableError } from '../../src'
import type { ExploreMember, FakeClient, World } from '../../src/testing'
import { TRANSACTION_KINDS } from '../../src/testing/explore-faults'
import { Ledger, type Fate, type Ordering } from './ledger'

/** How a test plants a bug: the client that the engine gets in place of its own. */
export type Plant = (client: FakeClient) => FakeClient

const FATES: readonly Fate[] = ['ok', 'ok', 'ok', 'ok', 'shaky', 'shaky', 'fatal', 'hopeless']
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const SCHEDULE = ['300ms', '2s']

export interface StormOptions {
  readonly plant?: Plant
  readonly delivery?: 'at-least-once' | 'exactly-once'
}

export function storm({ plant = (client) => client, delivery = 'at-least-once' }: StormOptions = {}) {
  return async (world: World): Promise<void> => {
    const partitions = world.int(1, 3)
    const ordering = world.pick<Ordering>(['partition', 'key', 'unordered'])
    const stage = { group: 'billing', topic: 'orders', schedule: SCHEDULE, ordering, delivery }
    for (const topic of ['orders', ...SCHEDULE.map((delay) => `orders.retry.${delay}`), 'orders.dlq']) {
      world.kafka.createTopic(topic, { partitions })
    }
    const ledger = new Ledger(world, stage)
    const options = {
      delivery,
      ordering,
      concurrency: world.pick([1, 2, 16]),
      commitInterval: world.pick(['20ms', '20ms', '300ms', '1s']),
      maxBufferedRecords: world.pick([3, 10_000]),
      publishTimeout: world.pick(['1s', '30s']),
    }
    world.note(`${partitions} partitions, ${JSON.stringify(options)}`)
    const join = (): ExploreMember =>
      world.join((client, name) => member(world, ledger, plant(ledger.watch(client)), name, options))
    const live = (): ExploreMember[] => world.members.filter(({ state }) => state === 'starting' || state === 'running')

    const first = join()
    if (world.chance(0.5)) await world.run(first.started)
    let produced = 0
    for (let round = world.int(5, 12); round > 0; round--) {
      for (let n = world.int(0, 4); n > 0; n--) {
        const key = world.chance(0.2) ? null : `k${world.int(0, 3)}`
        ledger.produce(key, `r${produced++}`, world.pick(FATES))
      }
      if (world.chance(0.6)) world.disturb()
      if (world.chance(0.3)) world.disturb({ of: ['hold', 'drop', 'fail'], kinds: ['publish', 'commit'] })
      if (delivery === 'exactly-once' && world.chance(0.6)) {
        world.disturb({ of: ['hold', 'drop', 'fail'], kinds: TRANSACTION_KINDS })
      }
      const change = world.random()
      if (change < 0.25 && live().length < 3) join()
      else if (change < 0.4 && live().length > 1) void world.pick(live()).stop()
      else if (change < 0.47 && live().length > 1) world.pick(live()).kill()
      for (let steps = world.int(1, 3); steps > 0; steps--) await world.step(world.pick([5, 50, 50, 400, 400, 7000]))
    }
    world.calm()
    if (!live().some(({ state }) => state === 'running')) join()
    await world.until(() => {
      // A start that a fault has ended is tried again, as whoever runs it would.
      if (live().length === 0) join()
      return ledger.settled
    }, 'everything is settled and committed')
    ledger.close()
    for (const one of live()) await world.run(one.stop(), `the stop of ${one.name}`)
  }
}

function member(world: World, ledger: Ledger, client: FakeClient, name: string, options: object) {
  const self = (): ExploreMember | undefined => world.members.find((one) => one.name === name)
  const consumer = createResilientConsumer({
    kafka: client,
    groupId: ledger.stage.group,
    topic: ledger.stage.topic,
    schedule: [...ledger.stage.schedule],
    unknownErrors: 'retry',
    sameGroupInProcess: 'allow',
    sessionTimeout: '6s',
    heartbeatInterval: '200ms',
    shutdownTimeout: '5s',
    logger: SILENT,
    ...options,
    handler: async ({ partition, message }, ctx) => {
      const value = String(message.value)
      const call = ledger.begin({
        member: name,
        partition,
        offset: message.offset,
        key: message.key && message.key.toString(),
        attempt: ctx.attempt,
        source: ctx.source,
      })
      await world.work(world.chance(0.05) ? 3000 : 60)
      await self()?.breathe()
      const fate = ledger.fates.get(value)
      const fails =
        fate === 'fatal' || fate === 'hopeless' || (fate === 'shaky' && ctx.attempt < 2 + (Number(message.offset) % 2))
      ledger.end(call, fails)
      if (fate === 'fatal') throw new NonRetryableError('a bad order')
      if (fails) throw new RetryableError('the shop is closed')
    },
  })
  consumer.on('rebalanced', ({ tier, removed }) => {
    if (removed > 0) ledger.lost(name, tier)
  })
  consumer.on('crashed', ({ tier }) => ledger.lost(name, tier))
  consumer.on('reopened', ({ tier }) => ledger.lost(name, tier))
  return consumer
}
