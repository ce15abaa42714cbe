/**
 * One process of a service: a resilient consumer that keeps a ledger. It stops on SIGTERM and then ends by itself, which
 * is part of what is tested; SIGKILL is what it is for.
 */
import { Kafka, logLevel } from 'kafkajs'
import { createResilientConsumer, NonRetryableError, RetryableError, type RetrylineEvent } from '../../src'
import { openLedger, type Ledger } from './ledger'
import { decodeWish } from './payload'

export interface WorkerOptions {
  readonly name: string
  readonly ledger: string
  readonly brokers: readonly string[]
  readonly groupId: string
  readonly topic: string
  readonly schedule: readonly string[]
}

const options = JSON.parse(process.argv[2] ?? '{}') as WorkerOptions
const ledger = openLedger(options.ledger, options.name)
const kafka = new Kafka({
  clientId: options.name,
  brokers: [...options.brokers],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 10 },
})
const nothing = (): void => undefined

const consumer = createResilientConsumer({
  kafka,
  groupId: options.groupId,
  topic: options.topic,
  schedule: options.schedule,
  topicSetup: 'create',
  sessionTimeout: '4s',
  heartbeatInterval: '500ms',
  shutdownTimeout: '10s',
  logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  async handler({ topic, partition, message }, ctx) {
    const wish = decodeWish(message.value)
    const { attempt, dueAt, source } = ctx
    const call = {
      place: `${topic}/${partition}@${message.offset}`,
      attempt,
      source: `${source.topic}/${source.partition}@${source.offset}`,
    }
    ledger.write({ what: 'begin', ...call, ...(dueAt !== undefined && { dueAt }) })
    await work(wish.ms)
    const fails = attempt <= wish.fails
    ledger.write({ what: 'end', ...call, outcome: fails ? 'failed' : 'ok' })
    if (fails && wish.fatal) throw new NonRetryableError(`${wish.id} is not to be tried again`)
    if (fails) throw new RetryableError(`${wish.id} fails at attempt ${attempt}`)
  },
})

consumer.on('all', (event) => note(ledger, event))

process.once('SIGTERM', () => {
  ledger.write({ what: 'stopping' })
  void consumer.stop().then((report) => {
    ledger.write({ what: 'note', text: `stop: ${JSON.stringify(report)}` })
    ledger.write({ what: 'stopped' })
    ledger.close()
    // From here on nothing but what the consumer left behind would keep this process alive.
    process.disconnect()
  })
})

await consumer.start()
ledger.write({ what: 'started' })
process.send?.('started')

/** Stands for the service's own work. */
function work(ms: number): Promise<void> {
  if (ms === 0) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => resolve()
    setTimeout(done, ms)
  })
}

function note(into: Ledger, event: RetrylineEvent): void {
  if (event.type === 'rebalanced') into.write({ what: 'rebalanced', tier: event.tier, removed: event.removed })
  if (event.type === 'crashed') into.write({ what: 'crashed', tier: event.tier })
  const worth = ['rebalanced', 'reopened', 'crashed', 'commitFailed', 'publishFailed', 'problem', 'abandoned', 'gone']
  if (worth.includes(event.type)) into.write({ what: 'note', text: JSON.stringify(event) })
}
