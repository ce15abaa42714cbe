/**
 * `kafka.producer()`: kafkajs's producer over the fake broker, plain, idempotent or transactional.
 *
 * With a transactional id it is two producers: one for its transactions, known to the broker from the first
 * `transaction()` on (which fences whoever had the id before), and one for what is sent outside of them, which is
 * idempotent if it was asked to be and known from `connect()` on.
 */
import { Cluster, type ClientContext } from './cluster'
import { KafkaJSNonRetriableError } from './errors'
import { EosManager } from './eos-manager'
import { Instrumentation, PRODUCER_EVENTS, type On } from './events'
import { silentKafkaLogger } from './logger'
import {
  createMessageProducer,
  type ConnectionState,
  type MessageProducer,
  type ProducerBatch,
  type ProducerRecord,
} from './message-producer'
import { createDefaultPartitioner } from './partitioner'
import { createRetrier } from './retrier'
import type { FakeLogger, FakeProducerConfig, RecordMetadata, TopicOffsets } from './types'

const { CONNECT, DISCONNECT } = PRODUCER_EVENTS

export interface FakeProducer {
  connect(): Promise<void>
  disconnect(): Promise<void>
  isIdempotent(): boolean
  send(record: ProducerRecord): Promise<RecordMetadata[]>
  sendBatch(batch: ProducerBatch): Promise<RecordMetadata[]>
  transaction(): Promise<FakeTransaction>
  on: On
  logger(): FakeLogger
  readonly events: typeof PRODUCER_EVENTS
}

export interface FakeTransaction {
  send(record: ProducerRecord): Promise<RecordMetadata[]>
  sendBatch(batch: ProducerBatch): Promise<RecordMetadata[]>
  /** Commits a group's offsets with the transaction. */
  sendOffsets(offsets: { consumerGroupId: string; topics: TopicOffsets[] }): Promise<void>
  commit(): Promise<void>
  abort(): Promise<void>
  isActive(): boolean
}

export function createFakeProducer(context: ClientContext, config: FakeProducerConfig = {}): FakeProducer {
  const { idempotent = false, transactionalId, transactionTimeout = 60_000 } = config
  const { clock } = context.broker
  const retry = { ...context.retry, ...config.retry }
  if (idempotent && retry.retries !== undefined && retry.retries < 1) {
    throw new KafkaJSNonRetriableError('Idempotent producer must allow retries to protect against transient errors')
  }
  const cluster = new Cluster(context, config.metadataMaxAge ?? 300_000)
  const events = new Instrumentation(clock, 'producer', PRODUCER_EVENTS)
  const logger = silentKafkaLogger()
  const partitioner = (config.createPartitioner ?? createDefaultPartitioner)()
  const retrier = createRetrier(clock, retry)
  let state: ConnectionState = 'disconnected'

  const identity = (id?: string): EosManager => new EosManager({ cluster, transactionalId: id, transactionTimeout })
  const sending = (eos: EosManager, isIdempotent: boolean): MessageProducer =>
    createMessageProducer({ cluster, partitioner, eos, retrier, idempotent: isIdempotent, connection: () => state })

  const outside = identity()
  const plain = sending(outside, idempotent)
  let inside: EosManager | undefined

  async function transaction(): Promise<FakeTransaction> {
    if (!transactionalId) {
      throw new KafkaJSNonRetriableError('Must provide transactional id for transactional producer')
    }
    const eos = (inside ??= identity(transactionalId))
    if (eos.isInTransaction()) {
      throw new KafkaJSNonRetriableError(
        'There is already an ongoing transaction for this producer. Please end the transaction before beginning another.',
      )
    }
    if (!eos.isInitialized()) await eos.initProducerId()
    eos.beginTransaction()
    return openTransaction(cluster, eos, sending(eos, true))
  }

  return {
    async connect() {
      await cluster.connect()
      state = 'connected'
      events.emit(CONNECT)
      if (idempotent && !outside.isInitialized()) await outside.initProducerId()
    },
    async disconnect() {
      state = 'disconnecting'
      await cluster.disconnect()
      state = 'disconnected'
      events.emit(DISCONNECT)
    },
    isIdempotent: () => idempotent,
    ...plain,
    transaction,
    on: events.on,
    logger: () => logger,
    events: PRODUCER_EVENTS,
  }
}

function openTransaction(cluster: Cluster, eos: EosManager, { send, sendBatch }: MessageProducer): FakeTransaction {
  let ended = false
  const isActive = (): boolean => eos.isInTransaction() && !ended
  const guarded =
    <A extends unknown[], R>(fn: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      if (!isActive()) throw new KafkaJSNonRetriableError('Cannot continue to use transaction once ended')
      return fn(...args)
    }
  return {
    sendBatch: guarded(sendBatch),
    send: guarded(send),
    abort: guarded(async () => {
      await eos.abort()
      ended = true
    }),
    commit: guarded(async () => {
      await eos.commit()
      ended = true
    }),
    sendOffsets: guarded(async ({ consumerGroupId, topics }) => {
      await eos.sendOffsets({ consumerGroupId, topics })
      // Known as committed to this client's consumers from here on, though nothing is committed yet.
      const committed = cluster.committedOffsets(consumerGroupId)
      for (const { topic, partitions } of topics) {
        for (const { partition, offset } of partitions) (committed[topic] ??= {})[partition] = offset
      }
    }),
    isActive,
  }
}
