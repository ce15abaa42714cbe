/**
 * An idle process for R76: the given consumers, started and left alone, and what they cost. Prints one line of JSON when it
 * has settled and been watched.
 */
import { Kafka, logLevel } from 'kafkajs'
import { createResilientConsumer } from '../../src'
import { silentLogger, systemClock } from '../../src/ports'

export interface IdleOptions {
  readonly brokers: readonly string[]
  readonly topic: string
  readonly groupId: string
  /** `plain`: kafkajs alone, as many consumers and a producer. `ours`: one resilient consumer with that many groups. */
  readonly who: 'plain' | 'ours'
  readonly waits: readonly string[]
  readonly settleMs: number
  readonly watchMs: number
}

export interface IdleReport {
  readonly node: string
  /** Share of one core, in per cent. */
  readonly cpu: number
  /** Messages of warnings that Node gave. */
  readonly warnings: readonly string[]
}

const { brokers, topic, groupId, who, waits, settleMs, watchMs } = JSON.parse(process.argv[2] ?? '{}') as IdleOptions
const warnings: string[] = []
process.on('warning', ({ name }) => void warnings.push(name))
const pause = (ms: number): Promise<void> => new Promise((resolve) => systemClock.after(ms, resolve))

const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING })
const stop = await (who === 'plain' ? startPlain() : startOurs())
await pause(settleMs)
const [before, startedAt] = [process.cpuUsage(), process.hrtime.bigint()]
await pause(watchMs)
const { user, system } = process.cpuUsage(before)
const tookUs = Number((process.hrtime.bigint() - startedAt) / 1000n)
const report: IdleReport = { node: process.version, cpu: (100 * (user + system)) / tookUs, warnings }
process.stdout.write(`${JSON.stringify(report)}\n`)
await stop()

async function startOurs(): Promise<() => Promise<unknown>> {
  const consumer = createResilientConsumer({
    kafka,
    groupId,
    topic,
    schedule: waits,
    topicSetup: 'create',
    logger: silentLogger,
    handler: () => undefined,
  })
  await consumer.start()
  return () => consumer.stop()
}

/** With the settings that ours has, so that the same number of fetches goes out. */
async function startPlain(): Promise<() => Promise<unknown>> {
  const groups = [groupId, ...waits.map((wait) => `${groupId}.${wait}`)]
  const consumers = groups.map((group) => kafka.consumer({ groupId: group, maxWaitTimeInMs: 200 }))
  const producer = kafka.producer()
  await producer.connect()
  for (const consumer of consumers) {
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ autoCommit: false, eachMessage: async () => undefined })
  }
  return () => Promise.all([producer, ...consumers].map((client) => client.disconnect()))
}
