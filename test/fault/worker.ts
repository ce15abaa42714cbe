/**
 * One process of a service: a resilient consumer that keeps a ledger. It stops on SIGTERM and then ends by itself, which
 * is part of what is tested; SIGKILL is what it is for.
 */
import { Kafka, logLevel } from 'kafkajs'
import { Socket } from 'node:net'
import {
  createResilientConsumer,
  NonRetryableError,
  RetryableError,
  type EventOf,
  type RetrylineEvent,
} from '../../src'
import { withGuardedConnections } from '../../src/adapters/kafkajs/framing'
import { obey, type Command, type Spells } from './commands'
import { makeFreezable } from './freeze'
import { openLedger, type Ledger } from './ledger'
import { decodeWish, type Wish } from './payload'

export interface WorkerOptions {
  readonly name: string
  readonly ledger: string
  readonly brokers: readonly string[]
  readonly groupId: string
  readonly topic: string
  readonly schedule: readonly string[]
  readonly ordering?: 'partition' | 'key' | 'unordered'
  readonly delivery?: 'at-least-once' | 'exactly-once'
  /** Where the handler's own records go, for wishes that ask for one. */
  readonly out?: string
  /** Default `'create'`. */
  readonly topicSetup?: 'verify' | 'create'
  /** kafkajs's, ms: how long it takes to notice that a connection is silent. Default: kafkajs's own, 30,000. */
  readonly requestTimeout?: number
  /** How soon the broker takes a dead worker's partitions away. Default 4 s; a heartbeat goes each eighth of it. */
  readonly sessionTimeoutMs?: number
}

const options = JSON.parse(process.argv[2] ?? '{}') as WorkerOptions
const { sessionTimeoutMs = 4_000 } = options
const ledger = openLedger(options.ledger, options.name)
const spells: Spells = { hang: 0, freeze: { before: undefined } }
makeFreezable(spells.freeze, ledger)
const kafka = new Kafka({
  clientId: options.name,
  brokers: [...options.brokers],
  logLevel: logLevel.NOTHING,
  ...(options.requestTimeout !== undefined && { requestTimeout: options.requestTimeout }),
  retry: { initialRetryTime: 50, maxRetryTime: 2_000, retries: 10 },
})
// As a service has it: else kafkajs's faults are found, and not ours.
if (withGuardedConnections(kafka) === kafka) throw new Error('the connections of this worker are not guarded')
const nothing = (): void => undefined

const consumer = createResilientConsumer({
  kafka,
  groupId: options.groupId,
  topic: options.topic,
  schedule: options.schedule,
  topicSetup: options.topicSetup ?? 'create',
  ...(options.ordering !== undefined && { ordering: options.ordering }),
  ...(options.delivery === 'exactly-once' && { delivery: options.delivery }),
  sessionTimeout: sessionTimeoutMs,
  heartbeatInterval: sessionTimeoutMs / 8,
  shutdownTimeout: '10s',
  // More than a blocked loop lasts: a handler that has done its work by then has not failed.
  handlerTimeout: '9s',
  logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  async handler({ topic, partition, message }, ctx) {
    const { attempt, dueAt, source } = ctx
    const call = {
      place: `${topic}/${partition}@${message.offset}`,
      attempt,
      source: `${source.topic}/${source.partition}@${source.offset}`,
    }
    ledger.write({ what: 'begin', ...call, ...(dueAt !== undefined && { dueAt }) })
    if (attempt === 1 && spells.hang > 0) {
      spells.hang--
      // The time-out is its end, though it never settles.
      const timedOut = (): void => ledger.write({ what: 'end', ...call, outcome: 'failed' })
      ctx.signal.addEventListener('abort', timedOut)
      await new Promise(() => undefined)
    }
    let wish: Wish
    try {
      wish = decodeWish(message.value)
    } catch (error) {
      // What strangers write fails as it does in a service, and stands in the ledger like any call.
      ledger.write({ what: 'end', ...call, outcome: 'failed' })
      throw error
    }
    await work(wish.ms)
    if (wish.exits === true) process.exit(1)
    const fails = attempt <= wish.fails
    if (wish.send === true && options.out !== undefined)
      ctx.send({ topic: options.out, value: JSON.stringify({ place: call.place, attempt }) })
    ledger.write({ what: 'end', ...call, outcome: fails ? 'failed' : 'ok' })
    if (fails && wish.fatal) throw new NonRetryableError(`${wish.id} is not to be tried again`)
    if (fails) throw new RetryableError(`${wish.id} fails at attempt ${attempt}`)
  },
})

/** The lanes of each tier as they were after the last rebalance. */
const lanes = new Map<string, readonly string[]>()
consumer.on('all', (event) => note(ledger, event))

let stopping = false
process.on('message', (command: Command) => obey({ consumer, ledger, spells }, command))
// Whoever started this process is gone, and with it whoever would end it.
process.once('disconnect', () => {
  if (!stopping) process.exit(1)
})
process.once('SIGTERM', () => {
  stopping = true
  ledger.write({ what: 'stopping' })
  void consumer.stop().then((report) => {
    ledger.write({ what: 'note', text: `stop: ${JSON.stringify(report)}` })
    ledger.write({ what: 'stopped' })
    // Holds nothing up; where something else does, this tells what.
    const tell = (): void => {
      ledger.write({ what: 'note', text: `still alive: ${JSON.stringify(aliveBy())}` })
      ledger.close()
    }
    setTimeout(tell, 5_000).unref()
    // From here on nothing but what the consumer left behind would keep this process alive.
    process.disconnect()
  })
})

await consumer.start()
ledger.write({ what: 'started' })
process.send?.('started')

/** What keeps the event loop of this process going. */
function aliveBy(): object {
  const { _getActiveHandles: handles } = process as unknown as { _getActiveHandles(): object[] }
  const sockets = handles
    .call(process)
    .filter((handle): handle is Socket => handle instanceof Socket && handle.remotePort !== undefined)
  return {
    resources: process.getActiveResourcesInfo(),
    sockets: sockets.map((one) => `${one.localPort}>${one.remotePort} ${one.readyState}`),
  }
}

/** Stands for the service's own work. */
function work(ms: number): Promise<void> {
  if (ms === 0) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => resolve()
    setTimeout(done, ms)
  })
}

function note(into: Ledger, event: RetrylineEvent): void {
  if (event.type === 'rebalanced') into.write({ what: 'rebalanced', ...rebalance(event) })
  if (event.type === 'retried' || event.type === 'deadLettered')
    into.write({ what: 'routed', source: `${event.topic}/${event.partition}@${event.offset}` })
  if (event.type === 'reopened')
    into.write({ what: 'reopened', tier: event.tier, lost: [`${event.topic}/${event.partition}`] })
  if (event.type === 'deadLettered' && event.reason === 'too-large')
    into.write({ what: 'note', text: JSON.stringify(event) })
  if (event.type === 'crashed') into.write({ what: 'crashed', tier: event.tier })
  if (event.type === 'commitFailed') into.write({ what: 'commitRefused', tier: event.tier })
  const worth = ['rebalanced', 'reopened', 'crashed', 'commitFailed', 'publishFailed', 'problem', 'abandoned', 'gone']
  const more = [
    'metadata',
    'late',
    'restarted',
    'held',
    'released',
    'unreadable',
    'readable',
    'halted',
    'envelope',
    'fenced',
  ]
  if (worth.includes(event.type) || more.includes(event.type)) into.write({ what: 'note', text: JSON.stringify(event) })
}

/** The event counts; its listener runs while the lanes stand as the event tells, and so can name them. */
function rebalance({ tier, removed, kept }: EventOf<'rebalanced'>): {
  tier: string
  removed: number
  lost: string[]
  gained: string[]
} {
  const group = consumer.health().groups.find((one) => one.tier === tier)
  const before = lanes.get(tier) ?? []
  const after = (group?.partitions ?? []).map(({ topic, partition }) => `${topic}/${partition}`)
  lanes.set(tier, after)
  // Under a new member id nothing is kept, though the same partitions may be there again.
  const lost = before.filter((lane) => kept === 0 || !after.includes(lane))
  return { tier, removed, lost, gained: after.filter((lane) => kept === 0 || !before.includes(lane)) }
}
