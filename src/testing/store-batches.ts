/** A produce request at the broker: each partition for itself; the client is told of the first that failed. */
import type { FakeBroker } from './broker'
import { codecOn } from './codecs'
import { KafkaJSProtocolError } from './errors'
import { isProtocolError, partitionFits, type Fault } from './faults'
import { sizeOfBatch, type NewRecord, type PartitionLog, type Topic } from './log'
import type { ProducerMark } from './producer-states'
import type { RecordMetadata } from './types'

export interface PartitionBatch {
  readonly topic: string
  readonly partition: number
  readonly records: readonly NewRecord[]
  readonly by: ProducerMark
  readonly compression: number | undefined
}

export interface ProduceRequest {
  readonly node: number
  readonly batches: readonly PartitionBatch[]
  readonly acks: number
  readonly transactionalId: string | undefined
}

export function storeBatches(broker: FakeBroker, request: ProduceRequest, fault: Fault | undefined): RecordMetadata[] {
  // A connection that breaks takes the whole request with it; an error of Kafka's is of single partitions.
  if (fault?.do === 'fail' && !isProtocolError(fault.error)) throw broker.errorOf(fault.error, request.node)
  let failed: Error | undefined
  const answers: RecordMetadata[] = []
  for (const batch of request.batches) {
    try {
      if (fault?.do === 'fail' && partitionFits(fault.where, batch.topic, batch.partition)) {
        throw broker.errorOf(fault.error, request.node)
      }
      answers.push(store(broker, request, batch))
    } catch (e) {
      failed ??= e as Error
    }
  }
  if (failed !== undefined) throw failed
  return answers
}

function store(broker: FakeBroker, { node, acks, transactionalId }: ProduceRequest, batch: PartitionBatch) {
  const { topics, transactions, clock } = broker
  const { topic, partition, records, by } = batch
  const found = topics.find(topic)
  const log = found?.partitions[partition]
  if (found === undefined || log === undefined) throw new KafkaJSProtocolError('UNKNOWN_TOPIC_OR_PARTITION')
  if (topics.leaderOf(topic, partition) !== node) throw new KafkaJSProtocolError('NOT_LEADER_FOR_PARTITION')
  const isFirst = by.transactional && log.producers.openFrom(by.producerId) === undefined
  if (isFirst && !transactions.isOpenFor(transactionalId ?? '', by.producerId, by.epoch, topic, partition)) {
    log.producers.check(by, records.length)
    throw new KafkaJSProtocolError('INVALID_TXN_STATE')
  }
  check(broker, found, batch, acks)
  const known = log.producers.check(by, records.length)
  if (known !== undefined) return answer(batch, log, known.base, known.timestamp)
  const stamp = topics.setting(found, 'message.timestamp.type') === 'LogAppendTime' ? clock.now() : undefined
  const stamped = stamp === undefined ? records : records.map((record) => ({ ...record, timestamp: stamp }))
  const sentAt = stamp === undefined ? undefined : Math.min(...records.map(({ timestamp }) => timestamp))
  const codec = codecOn(topics.setting(found, 'compression.type'), batch.compression)
  return answer(batch, log, log.append(stamped, by, sentAt, codec), stamp ?? -1)
}

/** What a broker wants of any batch. */
function check(
  { topics, clock }: FakeBroker,
  topic: Topic,
  { partition, records }: PartitionBatch,
  acks: number,
): void {
  if (sizeOfBatch(records) > Number(topics.setting(topic, 'max.message.bytes'))) {
    throw new KafkaJSProtocolError('MESSAGE_TOO_LARGE')
  }
  if (acks === -1 && Number(topics.setting(topic, 'min.insync.replicas')) > topics.inSync(topic.name, partition)) {
    throw new KafkaJSProtocolError('NOT_ENOUGH_REPLICAS')
  }
  const age = (timestamp: number): number => clock.now() - timestamp
  const oldest = Number(topics.setting(topic, 'message.timestamp.before.max.ms'))
  const newest = Number(topics.setting(topic, 'message.timestamp.after.max.ms'))
  const isTimed = topics.setting(topic, 'message.timestamp.type') === 'CreateTime'
  if (isTimed && records.some(({ timestamp }) => age(timestamp) > oldest || -age(timestamp) > newest)) {
    throw new KafkaJSProtocolError('INVALID_TIMESTAMP')
  }
  const isCompacted = topics.setting(topic, 'cleanup.policy').split(',').includes('compact')
  if (isCompacted && records.some(({ key }) => key === null)) throw new KafkaJSProtocolError('INVALID_RECORD')
}

const answer = ({ topic, partition }: PartitionBatch, log: PartitionLog, base: bigint, time: number) => ({
  topicName: topic,
  partition,
  errorCode: 0,
  baseOffset: String(base),
  logAppendTime: String(time),
  logStartOffset: String(log.logStart),
})
