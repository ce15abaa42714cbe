/**
 * One process that consumes and measures itself: what an idle consumer takes first, then what the load makes of it. Run with
 * `--expose-gc`, since only what is left after a collection is in use; what is not collected yet is no promise of ours.
 *
 * Order:  idle consumer -> measured, stopped -> 'idle' -> 'go' -> the consumer -> 'started' -> 'report' ... -> 'stop' -> ends
 */
import { createHash } from 'node:crypto'
import { Kafka, logLevel } from 'kafkajs'
import { createResilientConsumer, RetryableError, type ResilientConsumerOptions, type Health } from '../../src'

export interface BoundsOptions {
  readonly brokers: readonly string[]
  /** An empty topic, for the consumer that has nothing to do. */
  readonly idleTopic: string
  readonly groupId: string
  readonly topics: readonly string[]
  readonly consumer: Partial<
    Pick<ResilientConsumerOptions, 'schedule' | 'ordering' | 'maxBufferedBytes' | 'maxBufferedRecords'>
  >
  /** How long each call takes, ms. */
  readonly handlerMs: number
  /** How many attempts of each record fail. */
  readonly failures: number
  /** Whether the handler keeps digests of what it is given. */
  readonly digests: boolean
}

/** Bytes. `live` is heapUsed + external after a collection: external holds the buffers. */
export interface Usage {
  rss: number
  heapUsed: number
  external: number
  arrayBuffers: number
  live: number
}

export interface BoundsReport {
  readonly idle: Usage
  /** The most of each that was seen since the start. */
  readonly peak: Usage
  readonly now: Usage
  readonly calls: number
  readonly ok: number
  readonly early: number
  readonly mostLateMs: number
  readonly pauses: number
  readonly problems: readonly string[]
  readonly held: number
  readonly partitions: number
  readonly states: Readonly<Record<string, number>>
  readonly healthMs: number
  readonly digests: Readonly<Record<string, readonly string[]>>
}

const options = JSON.parse(process.argv[2] ?? '{}') as BoundsOptions
const { gc } = globalThis
if (gc === undefined) throw new Error('run it with --expose-gc')
const collect = gc
const nothing = (): void => undefined
const client = (): Kafka =>
  new Kafka({ clientId: 'bounds', brokers: [...options.brokers], logLevel: logLevel.NOTHING, retry: { retries: 10 } })

let calls = 0
let ok = 0
let early = 0
let mostLateMs = 0
let pauses = 0
const problems: string[] = []
const digests: Record<string, string[]> = {}

function make(groupId: string, topic: readonly string[]): ReturnType<typeof createResilientConsumer> {
  return createResilientConsumer({
    kafka: client(),
    groupId,
    topic: [...topic],
    schedule: [],
    topicSetup: 'create',
    logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    ...options.consumer,
    async handler({ message }, ctx) {
      calls++
      if (ctx.dueAt !== undefined) {
        const late = Date.now() - ctx.dueAt
        if (late < 0) early++
        mostLateMs = Math.max(mostLateMs, late)
      }
      if (options.digests) {
        const digest = createHash('sha256')
          .update(message.value ?? 'null')
          .digest('hex')
        ;(digests[String(message.key)] ??= []).push(digest)
      }
      if (options.handlerMs > 0) await pass(options.handlerMs)
      if (ctx.attempt <= options.failures) throw new RetryableError(`attempt ${ctx.attempt} fails`)
      ok++
    },
  })
}

/** Stands for work, and for a consumer's idle time. */
function pass(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => resolve()
    setTimeout(done, ms)
  })
}

function usage(): Usage {
  collect()
  return usageNow()
}

function usageNow(): Usage {
  const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage()
  return { rss, heapUsed, external, arrayBuffers, live: heapUsed + external }
}

/** Twice: what was freed by finalizers of the first is gone at the second. */
async function settled(): Promise<Usage> {
  usage()
  await new Promise((resolve) => setImmediate(resolve))
  return usage()
}

async function measureIdle(): Promise<Usage> {
  const consumer = make(`${options.groupId}-idle`, [options.idleTopic])
  await consumer.start()
  await pass(1_000)
  const found = await settled()
  await consumer.stop()
  return found
}

function count(health: Health): Pick<BoundsReport, 'held' | 'partitions' | 'states'> {
  const partitions = health.groups.flatMap((group) => group.partitions)
  const states: Record<string, number> = {}
  for (const { state } of partitions) states[state] = (states[state] ?? 0) + 1
  return { held: partitions.reduce((sum, { held }) => sum + held, 0), partitions: partitions.length, states }
}

const idle = await measureIdle()
process.send?.({ what: 'idle', idle })
await told('go')

const peak: Usage = { rss: 0, heapUsed: 0, external: 0, arrayBuffers: 0, live: 0 }
const note = (found: Usage): void => {
  for (const name of Object.keys(peak) as (keyof Usage)[]) peak[name] = Math.max(peak[name], found[name])
}
// What is not collected yet counts for the raw figures. A collection stops everything, so it is given a twentieth of the time.
let collectAt = 0
const sampler = setInterval(() => {
  const before = performance.now()
  if (before < collectAt) {
    note({ ...process.memoryUsage(), live: 0 })
    return
  }
  collectAt = Infinity
  void settled().then((found) => {
    note(found)
    const after = performance.now()
    collectAt = after + 20 * (after - before)
  })
}, 50)

const consumer = make(options.groupId, options.topics)
consumer.on('all', (event) => {
  if (event.type === 'lane' && event.full) pauses++
  if (['crashed', 'problem', 'gone', 'commitFailed', 'publishFailed', 'abandoned'].includes(event.type)) {
    problems.push(JSON.stringify(event))
  }
})
const startedAt = performance.now()
await consumer.start()
process.send?.({ what: 'started', ms: Math.round(performance.now() - startedAt) })

process.on('message', (message) => {
  if (message === 'look') look()
  if (message === 'report') void report()
  if (message === 'stop') void stop()
})

/** As things are, without a collection. */
function look(): void {
  const before = performance.now()
  const health = consumer.health()
  const healthMs = performance.now() - before
  process.send?.({
    what: 'report',
    report: {
      idle,
      peak,
      now: usageNow(),
      calls,
      ok,
      early,
      mostLateMs,
      pauses,
      problems,
      ...count(health),
      healthMs,
      digests,
    },
  })
}

async function report(): Promise<void> {
  note(await settled())
  look()
}

async function stop(): Promise<void> {
  const before = performance.now()
  const { finished } = await consumer.stop()
  clearInterval(sampler)
  process.send?.({ what: 'stopped', ms: Math.round(performance.now() - before), finished }, () => process.disconnect())
}

function told(word: string): Promise<void> {
  return new Promise((resolve) => {
    const listen = (message: unknown): void => {
      if (message !== word) return
      process.off('message', listen)
      resolve()
    }
    process.on('message', listen)
  })
}
