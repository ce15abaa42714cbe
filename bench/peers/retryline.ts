import type { Duration } from '../../src/index'
import { library } from '../lib/library'
import { silent } from '../lib/kafka'
import { RETRIES, type Outcome, type System } from '../lib/system'

export interface Mode {
  ordering?: 'partition' | 'key' | 'unordered'
  concurrency?: number
  /** In place of the job's delay. */
  schedule?: readonly Duration[]
  topicSetup?: 'create' | 'verify'
}

/** Ours, with its defaults but for the mode. */
export const retryline =
  (mode: Mode = {}): System =>
  async ({ kafka, topic, groupId, delay, handle, during }) => {
    const { createResilientConsumer, fixed, NonRetryableError, RetryableError } = await library()
    const judge = (outcome: Outcome): void => {
      if (outcome === 'done') return
      throw outcome === 'again' ? new RetryableError('again, later') : new NonRetryableError('no use')
    }
    const consumer = createResilientConsumer({
      kafka,
      groupId,
      topic,
      schedule: fixed({ delay, retries: RETRIES }),
      topicSetup: 'create',
      logger: silent,
      ...mode,
      handler: async ({ message }, { attempt, dueAt }) => {
        const outcome = handle(message.value, attempt, dueAt)
        judge(typeof outcome === 'string' ? outcome : await outcome)
      },
    })
    await consumer.start()
    await during()
    await consumer.stop()
    const tier = `retry.${delay / 1000}s`
    const retries = { topic: `${topic}.${tier}`, groupId: `${groupId}.${tier}` }
    return { reads: [{ topic, groupId }, retries], deadLetters: `${topic}.dlq` }
  }
