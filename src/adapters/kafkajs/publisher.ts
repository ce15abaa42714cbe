import { RetrylineError } from '../../errors'
import type { Acknowledgement, DriverTools, Publisher } from '../../ports'
import { toKafkaHeaders, type Outgoing } from '../../record'
import { createDenials, type Denials } from './denied'
import type { KafkaJsLike, ProducerLike } from './kafkajs-like'

/** Few and short inner retries: the outer ones are ours, with a growing delay and a line in the log for each. */
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 3 }
/** kafkajs's number for the one codec that it brings itself. */
const GZIP = 1
/** How long the broker may wait for its replicas, ms (kafkajs's own default). */
const BROKER_TIMEOUT = 30_000

/**
 * Waits for all in-sync replicas and is not idempotent: an idempotent kafkajs producer that has had a `send` rejected
 * acknowledges a later record at the offset of the lost one, and that record is nowhere (seen on a real broker).
 */
export function createKafkajsPublisher(
  kafka: KafkaJsLike,
  { logger }: DriverTools,
  denials: Denials = createDenials(kafka),
): Publisher {
  let producer: ProducerLike | undefined
  let connecting: Promise<ProducerLike> | undefined
  let closed = false
  /** Connections that were given up and have not ended yet. */
  const leaving = new Set<Promise<void>>()

  function connected(): Promise<ProducerLike> {
    if (closed) return Promise.reject(new RetrylineError('RETRYLINE_STATE', 'the publisher is closed'))
    const mine = (connecting ??= connect())
    mine.catch(() => {
      if (connecting === mine) connecting = undefined
    })
    return mine
  }

  async function connect(): Promise<ProducerLike> {
    const made = kafka.producer({
      allowAutoTopicCreation: false,
      idempotent: false,
      // Every record comes with a partition of ours. Also: without a partitioner kafkajs prints a warning.
      createPartitioner: () => (args) => (args as { message: { partition: number } }).message.partition,
      retry: RETRY,
    })
    producer = made
    await made.connect()
    // Not `producer`: a reset meanwhile has cleared that. What is sent on this one then fails and is sent again.
    return made
  }

  function drop(): Promise<void> {
    const [old, made] = [producer, connecting]
    producer = undefined
    connecting = undefined
    if (old === undefined) return Promise.resolve()
    const left = leave(old, made).finally(() => leaving.delete(left))
    leaving.add(left)
    return left
  }

  async function leave(old: ProducerLike, made: Promise<unknown> | undefined): Promise<void> {
    // A disconnect during a connect ends nothing: the connection is made all the same, and stays.
    await Promise.allSettled([made])
    try {
      await old.disconnect()
    } catch (error) {
      logger.debug('a producer did not disconnect cleanly', { error: String(error) })
    }
  }

  return {
    async connect() {
      await connected()
    },
    async publish(records, compress = false) {
      const ready = await connected()
      const topicMessages = byTopic(records)
      const request = { acks: -1, timeout: BROKER_TIMEOUT, ...(compress && { compression: GZIP }), topicMessages }
      const answer = await ready.sendBatch(request).catch(async (error: unknown) => {
        const names = topicMessages.map(({ topic }) => topic)
        throw await denials.explain(error, [{ operation: 'Write', resourceType: 'topic', names }])
      })
      return answer.map(({ topicName, partition, errorCode }): Acknowledgement => ({
        topic: topicName,
        partition,
        errorCode,
      }))
    },
    reset: drop,
    async disconnect() {
      closed = true
      void drop()
      await Promise.all(leaving)
    },
  }
}

type TopicMessages = NonNullable<Parameters<ProducerLike['sendBatch']>[0]['topicMessages']>

function byTopic(records: readonly Outgoing[]): TopicMessages {
  const topics = new Map<string, TopicMessages[number]['messages']>()
  for (const { topic, partition, key, value, headers } of records) {
    const message = { key, value, partition, headers: toKafkaHeaders(headers) }
    const messages = topics.get(topic)
    if (messages) messages.push(message)
    else topics.set(topic, [message])
  }
  return [...topics].map(([topic, messages]) => ({ topic, messages }))
}
