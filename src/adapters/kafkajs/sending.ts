/** What plain and transactional producers do alike. */
import { RetrylineError } from '../../errors'
import type { Acknowledgement, Clock } from '../../ports'
import { toKafkaHeaders, type Outgoing } from '../../record'
import type { Asked } from './denied'
import { clusterOf } from './framing'
import type { KafkaJsLike, ProducerBatchLike, ProducerLike } from './kafkajs-like'
import { producingFaster, type ProducingCluster } from './produce-faster'

/** kafkajs's number for the one codec that it brings itself. */
const GZIP = 1
/** How long the broker may wait for its replicas, ms (kafkajs's own default). */
const BROKER_TIMEOUT = 30_000

export const PRODUCER: NonNullable<Parameters<KafkaJsLike['producer']>[0]> = {
  allowAutoTopicCreation: false,
  idempotent: false,
  // Every record comes with a partition of ours. Also: without a partitioner kafkajs prints a warning.
  createPartitioner: () => (args) => (args as { message: { partition: number } }).message.partition,
  // Few and short inner retries: the outer ones are ours, with a growing delay and a line in the log for each.
  retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 3 },
}

/** Messages of a transaction that may be given to brokers once only. */
const once = new WeakSet<object>()
const given = new WeakSet<object>()

/**
 * kafkajs tries what goes to several brokers again as a whole where one of them has failed, and asks anew who leads which partition:
 * what one broker has taken, and another leads by now, is sent to that one too, under a sequence number of its own, so that
 * both stand in the transaction. So there is no second try but for a single partition, whose sequence numbers tell it from the
 * first; the transaction fails, and is begun anew.
 */
export const TRANSACTIONAL: typeof PRODUCER = {
  ...PRODUCER,
  createPartitioner: () => (args) => {
    const { message } = args as { message: { partition: number } }
    if (once.has(message)) {
      if (given.has(message)) throw new RetrylineError('RETRYLINE_STATE', GIVEN)
      given.add(message)
    }
    return message.partition
  },
}

/** Of which requests are written faster, where its client is kafkajs's. */
export function makeProducer(kafka: KafkaJsLike, config: typeof PRODUCER, clock: Pick<Clock, 'now'>): ProducerLike {
  const producer = kafka.producer(config)
  producingFaster(clusterOf(producer) as ProducingCluster | undefined, () => clock.now())
  return producer
}

const GIVEN = 'not every broker took its part of the transaction at the first try; it is begun anew'

/** Of a transaction, by a producer that was made `TRANSACTIONAL`. */
export function sendInTransaction(
  to: Pick<ProducerLike, 'sendBatch'>,
  records: readonly Outgoing[],
  compress: boolean,
): Promise<Acknowledgement[]> {
  const topicMessages = byTopic(records)
  const [first] = records
  if (records.some(({ topic, partition }) => topic !== first!.topic || partition !== first!.partition))
    for (const { messages } of topicMessages) for (const message of messages) once.add(message)
  return sendAs(to, topicMessages, compress)
}

/** Waits for all in-sync replicas. */
export function sendAll(
  to: Pick<ProducerLike, 'sendBatch'>,
  records: readonly Outgoing[],
  compress: boolean,
): Promise<Acknowledgement[]> {
  return sendAs(to, byTopic(records), compress)
}

async function sendAs(
  to: Pick<ProducerLike, 'sendBatch'>,
  topicMessages: TopicMessages,
  compress: boolean,
): Promise<Acknowledgement[]> {
  const answer = await to.sendBatch({
    acks: -1,
    timeout: BROKER_TIMEOUT,
    ...(compress && { compression: GZIP }),
    topicMessages,
  })
  return answer.map(({ topicName, partition, errorCode }) => ({ topic: topicName, partition, errorCode }))
}

/** What a principal must be allowed to do to send these. */
export function writeTo(records: readonly Outgoing[]): Asked {
  return { operation: 'Write', resourceType: 'topic', names: [...new Set(records.map(({ topic }) => topic))] }
}

type TopicMessages = NonNullable<ProducerBatchLike['topicMessages']>

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
