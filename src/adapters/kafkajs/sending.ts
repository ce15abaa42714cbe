/** What plain and transactional producers do alike. */
import type { Acknowledgement } from '../../ports'
import { toKafkaHeaders, type Outgoing } from '../../record'
import type { Asked } from './denied'
import type { KafkaJsLike, ProducerBatchLike, ProducerLike } from './kafkajs-like'

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

/** Waits for all in-sync replicas. */
export async function sendAll(
  to: Pick<ProducerLike, 'sendBatch'>,
  records: readonly Outgoing[],
  compress: boolean,
): Promise<Acknowledgement[]> {
  const answer = await to.sendBatch({
    acks: -1,
    timeout: BROKER_TIMEOUT,
    ...(compress && { compression: GZIP }),
    topicMessages: byTopic(records),
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
