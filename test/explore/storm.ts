/**
 * The scenario of the promises: members of one group on a main topic, two tiers and a dead letter topic come, go, crash
 * and are killed while records of every fate flow and requests are held, refused and lost.
 */
import {
  createResilientConsumer,
  NonRetryableError,
  RetryableError,
  type BatchHandler,
  type BatchMessage,
  type Handler,
} from '../../src'
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
  /** The handler takes many records at once; not with `exactly-once`. */
  readonly batches?: boolean
}

export function storm({ plant = (client) => client, delivery = 'at-least-once', batches = false }: StormOptions = {}) {
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
      ...(batches && { batch: { maxRecords: world.pick([2, 5, 100]), linger: world.pick([0, '50ms']) } }),
    }
    world.note(`${partitions} partitions, ${JSON.stringify(options)}`)
    const join = (): ExploreMember =>
      world.join((client, name) => member(world, ledger, plant(ledger.watch(client)), name, { ...options, batches }))
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

function member(
  world: World,
  ledger: Ledger,
  client: FakeClient,
  name: string,
  { batches, ...options }: { batches: boolean },
) {
  const self = (): ExploreMember | undefined => world.members.find((one) => one.name === name)

  type Delivery = Pick<BatchMessage, 'partition' | 'offset' | 'key' | 'value' | 'attempt' | 'source'>
  async function handle(delivery: Delivery, tenure?: number): Promise<void> {
    const { partition, offset, key, value, attempt, source } = delivery
    const call = ledger.begin({
      member: name,
      partition,
      offset,
      key: key && key.toString(),
      attempt,
      source,
      ...(tenure !== undefined && { tenure }),
    })
    await world.work(world.chance(0.05) ? 3000 : 60)
    await self()?.breathe()
    const fate = ledger.fates.get(String(value))
    const fails = fate === 'fatal' || fate === 'hopeless' || (fate === 'shaky' && attempt < 2 + (Number(offset) % 2))
    ledger.end(call, fails)
    if (fate === 'fatal') throw new NonRetryableError('a bad order')
    if (fails) throw new RetryableError('the shop is closed')
  }

  const one: Handler = ({ partition, message }, { attempt, source }) =>
    handle({ ...message, partition, attempt, source })
  const many: BatchHandler = async ({ messages }, ctx) => {
    // One after the other, under the tenure in which they were given.
    const tenure = ledger.tenureOf(name, ctx.source.topic)
    for (const message of messages) await handle(message, tenure).catch((error: unknown) => ctx.fail(message, error))
  }

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
    ...(batches ? { batchHandler: many } : { handler: one }),
  })
  consumer.on('rebalanced', ({ tier, removed }) => {
    if (removed > 0) ledger.lost(name, tier)
  })
  consumer.on('crashed', ({ tier }) => ledger.lost(name, tier))
  consumer.on('reopened', ({ tier }) => ledger.lost(name, tier))
  return consumer
}
