/**
 * `kafka.producer()`: kafkajs's producer over the fake broker, neither idempotent nor transactional.
 *
 * A send is: metadata -> partitions chosen -> one request to the one broker -> answers, tried again as a whole by the
 * retrier. Partitions are chosen anew at every try; what was stored before an error of another partition is stored
 * again. A record whose partition does not exist is left out, and the send resolves without it.
 */
import { Cluster, type ClientContext } from './cluster'
import {
  KafkaJSError,
  KafkaJSMetadataNotLoaded,
  KafkaJSNonRetriableError,
  isStaleMetadata,
  nameOf,
  notFaked,
} from './errors'
import type { ProtocolErrorType } from './error-codes'
import { Instrumentation, PRODUCER_EVENTS, type On } from './events'
import { isProtocolError, partitionFits, type Fault } from './faults'
import { encodeBytes, encodeHeaders } from './headers'
import { sizeOfBatch, type NewRecord } from './log'
import { silentKafkaLogger } from './logger'
import { createDefaultPartitioner } from './partitioner'
import { createRetrier } from './retrier'
import type { FakeLogger, FakeProducerConfig, OutgoingMessage, RecordMetadata } from './types'

const { CONNECT, DISCONNECT } = PRODUCER_EVENTS

export interface FakeProducer {
  connect(): Promise<void>
  disconnect(): Promise<void>
  isIdempotent(): boolean
  send(record: {
    topic: string
    messages: OutgoingMessage[]
    acks?: number
    timeout?: number
    compression?: number
  }): Promise<RecordMetadata[]>
  sendBatch(batch: {
    topicMessages?: { topic: string; messages: OutgoingMessage[] }[]
    acks?: number
    timeout?: number
    compression?: number
  }): Promise<RecordMetadata[]>
  transaction(): Promise<never>
  on: On
  logger(): FakeLogger
  readonly events: typeof PRODUCER_EVENTS
}

interface PartitionBatch {
  readonly topic: string
  readonly partition: number
  readonly records: readonly NewRecord[]
}

export function createFakeProducer(context: ClientContext, config: FakeProducerConfig = {}): FakeProducer {
  if (config.idempotent) throw notFaked('an idempotent producer')
  if (config.transactionalId !== undefined) throw notFaked('a transactional producer')
  const { clock } = context.broker
  const cluster = new Cluster(context, config.metadataMaxAge ?? 300_000)
  const events = new Instrumentation(clock, 'producer', PRODUCER_EVENTS)
  const logger = silentKafkaLogger()
  const partitioner = (config.createPartitioner ?? createDefaultPartitioner)()
  const retrier = createRetrier(clock, { ...context.retry, ...config.retry })
  let state: 'connected' | 'disconnecting' | 'disconnected' = 'disconnected'

  function place(topic: string, messages: readonly OutgoingMessage[]): PartitionBatch[] {
    const partitionMetadata = cluster.findTopicPartitionMetadata(topic)
    if (partitionMetadata.length === 0) throw new KafkaJSMetadataNotLoaded('Producing to topic without metadata')
    const chosen: Record<string, OutgoingMessage[]> = {}
    for (const message of messages) {
      ;(chosen[partitioner({ topic, partitionMetadata, message })] ??= []).push(message)
    }
    const byLeader = cluster.findLeaderForPartitions(topic, Object.keys(chosen))
    return Object.values(byLeader)
      .flat()
      .map((partition) => ({ topic, partition, records: encode(chosen[partition] ?? [], clock.now()) }))
  }

  async function publish(topicMessages: readonly TopicMessages[], acks: number): Promise<RecordMetadata[]> {
    await cluster.refreshMetadataIfNecessary()
    const batches = topicMessages.flatMap(({ topic, messages }) => place(topic, messages))
    if (batches.length === 0) return []
    const answers = await cluster.send(
      {
        kind: 'publish',
        api: 'Produce',
        label: `publish to ${[...new Set(batches.map(({ topic }) => topic))].join(', ')}`,
        topics: batches.map(({ topic, partition }) => ({ topic, partitions: [partition] })),
      },
      (fault) => store(batches, acks, fault),
      true,
    )
    return acks === 0 ? [] : answers
  }

  /** At the broker: each partition for itself; the client is told of the first that failed. */
  function store(batches: readonly PartitionBatch[], acks: number, fault: Fault | undefined): RecordMetadata[] {
    const { topics } = context.broker
    // A connection that breaks takes the whole request with it; an error of Kafka's is of single partitions.
    if (fault?.do === 'fail' && !isProtocolError(fault.error)) throw context.broker.errorOf(fault.error)
    let failed: Error | undefined
    const answers: RecordMetadata[] = []
    for (const { topic, partition, records } of batches) {
      const found = topics.find(topic)
      const log = found?.partitions[partition]
      let error: ProtocolErrorType | undefined
      if (fault?.do === 'fail' && partitionFits(fault.where, topic, partition)) {
        failed ??= context.broker.errorOf(fault.error)
        continue
      }
      if (found === undefined || log === undefined) error = 'UNKNOWN_TOPIC_OR_PARTITION'
      else if (sizeOfBatch(records) > Number(topics.setting(found, 'max.message.bytes'))) error = 'MESSAGE_TOO_LARGE'
      else if (acks === -1 && Number(topics.setting(found, 'min.insync.replicas')) > found.replicas) {
        error = 'NOT_ENOUGH_REPLICAS'
      } else if (isCompacted(topics.setting(found, 'cleanup.policy')) && records.some(({ key }) => key === null)) {
        error = 'INVALID_RECORD'
      } else {
        const stamp = topics.setting(found, 'message.timestamp.type') === 'LogAppendTime' ? clock.now() : undefined
        const stamped = stamp === undefined ? records : records.map((record) => ({ ...record, timestamp: stamp }))
        answers.push({
          topicName: topic,
          partition,
          errorCode: 0,
          baseOffset: String(log.append(stamped)),
          logAppendTime: String(stamp ?? -1),
          logStartOffset: String(log.logStart),
        })
      }
      if (error !== undefined) failed ??= context.broker.errorOf(error)
    }
    if (failed !== undefined) throw failed
    return answers
  }

  async function sendBatch({ acks = -1, topicMessages = [] }: Parameters<FakeProducer['sendBatch']>[0]) {
    check(topicMessages)
    if (state === 'disconnecting') {
      throw new KafkaJSNonRetriableError(
        "The producer is disconnecting; therefore, it can't safely accept messages anymore",
      )
    }
    if (state === 'disconnected') throw new KafkaJSError('The producer is disconnected')
    const merged = new Map<string, OutgoingMessage[]>()
    for (const { topic, messages } of topicMessages) merged.set(topic, [...(merged.get(topic) ?? []), ...messages])
    const all = [...merged].map(([topic, messages]) => ({ topic, messages }))
    return retrier(async (bail) => {
      await cluster.addMultipleTargetTopics([...merged.keys()])
      try {
        return await publish(all, acks)
      } catch (e) {
        if (nameOf(e) === 'KafkaJSConnectionClosedError') cluster.connectionLost()
        if (!cluster.isConnected()) {
          await cluster.connect()
          await cluster.refreshMetadata()
          throw e
        }
        const { retriable } = e as { retriable?: boolean }
        if (isStaleMetadata(e) || nameOf(e) === 'KafkaJSMetadataNotLoaded' || isWorthALook(e)) {
          await cluster.refreshMetadata()
          throw e
        }
        if (retriable) throw e
        return bail(e)
      }
    })
  }

  return {
    async connect() {
      await cluster.connect()
      state = 'connected'
      events.emit(CONNECT)
    },
    async disconnect() {
      state = 'disconnecting'
      await cluster.disconnect()
      state = 'disconnected'
      events.emit(DISCONNECT)
    },
    isIdempotent: () => false,
    send: async ({ topic, messages, ...rest }) => sendBatch({ ...rest, topicMessages: [{ topic, messages }] }),
    sendBatch,
    transaction: async () => {
      throw new KafkaJSNonRetriableError('Must provide transactional id for transactional producer')
    },
    on: events.on,
    logger: () => logger,
    events: PRODUCER_EVENTS,
  }
}

interface TopicMessages {
  readonly topic: string
  readonly messages: readonly OutgoingMessage[]
}

function check(topicMessages: readonly TopicMessages[]): void {
  if (topicMessages.some(({ topic }) => !topic)) throw new KafkaJSNonRetriableError('Invalid topic')
  for (const { topic, messages } of topicMessages as readonly { topic: string; messages?: OutgoingMessage[] }[]) {
    if (!messages) {
      throw new KafkaJSNonRetriableError(`Invalid messages array [${String(messages)}] for topic "${topic}"`)
    }
    const without = messages.find((message) => message.value === undefined)
    if (without) {
      throw new KafkaJSNonRetriableError(
        `Invalid message without value for topic "${topic}": ${JSON.stringify(without)}`,
      )
    }
  }
}

/** As kafkajs encodes: the first time stamp of the batch counts from the earliest that was given, sorted as text. */
function encode(messages: readonly OutgoingMessage[], now: number): NewRecord[] {
  return messages.map(({ key, value, headers, timestamp }) => ({
    timestamp: Number(timestamp ?? now),
    key: encodeBytes(key),
    value: encodeBytes(value),
    headers: encodeHeaders(headers),
    control: false,
  }))
}

const isCompacted = (policy: string): boolean => policy.split(',').includes('compact')

const isWorthALook = (e: unknown): boolean =>
  nameOf(e) === 'KafkaJSConnectionError' ||
  nameOf(e) === 'KafkaJSConnectionClosedError' ||
  (nameOf(e) === 'KafkaJSProtocolError' && (e as KafkaJSError).retriable)
