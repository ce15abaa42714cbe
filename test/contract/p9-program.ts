/** A program of a user's own: starts, handles, stops, and calls no process.exit. Told by its argument what to be amid. */
import { Kafka, logLevel } from 'kafkajs'
import { createResilientConsumer, RetryableError } from '../../src'

export interface ProgramOptions {
  readonly brokers: readonly string[]
  readonly topic: string
  readonly groupId: string
  readonly amid: 'nothing' | 'a handler that never settles' | 'a retry that waits' | 'a start'
}

const { brokers, topic, groupId, amid } = JSON.parse(process.argv[2] ?? '{}') as ProgramOptions
const nothing = (): void => undefined
let called = nothing
const call = new Promise<void>((resolve) => {
  called = resolve
})
const consumer = createResilientConsumer({
  kafka: new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }),
  groupId,
  topic,
  schedule: ['1h'],
  topicSetup: 'create',
  logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  async handler() {
    called()
    if (amid === 'a handler that never settles') await new Promise(nothing)
    if (amid === 'a retry that waits') throw new RetryableError('not now')
  },
})
const retried = new Promise<void>((resolve) => consumer.on('retried', () => resolve()))
const starting = consumer.start()
if (amid === 'a start') {
  starting.catch(nothing)
} else {
  await starting
  await call
  if (amid === 'a retry that waits') await retried
}
const startedAt = Date.now()
const report = await consumer.stop({ timeout: '500ms' })
process.stdout.write(`${JSON.stringify({ ...report, stopMs: Date.now() - startedAt, stoppedAt: Date.now() })}\n`)
