/** What the bounds tests put onto topics, fast. */
import { randomBytes } from 'node:crypto'
import { CompressionTypes, type Kafka, type Message } from 'kafkajs'

/** Records in one batch of one partition; kafkajs gains little from more. */
const PER_BATCH = 5_000

/** `make(n)` for n of 0 to `total`, spread over the partitions in turn, each partition's in order. */
export async function produceMany(
  kafka: Kafka,
  { topic, partitions, total }: { topic: string; partitions: number; total: number },
  make: (n: number) => Message,
): Promise<void> {
  const producer = kafka.producer({ allowAutoTopicCreation: false })
  await producer.connect()
  for (let from = 0; from < total;) {
    const messages: Message[] = []
    for (let i = 0; i < PER_BATCH * Math.min(partitions, 4) && from < total; i++, from++) {
      messages.push({ ...make(from), partition: from % partitions })
    }
    await producer.send({ topic, acks: -1, compression: CompressionTypes.GZIP, messages })
  }
  await producer.disconnect()
}

/** A copy as it stands on a retry topic, as the second attempt of a record that has failed once. */
export function retryOf(
  { topic, groupId, n, partition }: { topic: string; groupId: string; n: number; partition: number },
  dueAt: number,
): Message {
  const failedAt = '2026-01-01T00:00:00.000Z'
  return {
    key: `key-${n % 997}`,
    value: JSON.stringify({ order: n, token: noise(n) }),
    headers: {
      'x-attempt': '2',
      'x-due-at': String(dueAt),
      'x-original-topic': topic,
      'x-original-partition': String(partition),
      'x-original-offset': String(n),
      'x-original-timestamp': '1767225600000',
      'x-consumer-group': groupId,
      'x-first-failed-at': failedAt,
      'x-last-failed-at': failedAt,
      'x-error-class': 'RetryableError',
      'x-error': 'the payment service has answered 503',
      'x-history': JSON.stringify([{ attempt: 1, at: failedAt, error: 'RetryableError: 503' }]),
    },
  }
}

const NOISE = randomBytes(1024 * 1024).toString('base64')

/** 120 characters that hardly compress, as tokens and ids do; cheap to make. */
function noise(n: number): string {
  const at = (n * 7919) % (NOISE.length - 120)
  return NOISE.slice(at, at + 120)
}
