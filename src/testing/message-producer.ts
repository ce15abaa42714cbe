/**
 * What sends messages, for a producer and for each of its transactions: kafkajs's MessageProducer.
 *
 * A send is: metadata -> partitions chosen -> a request to each node that leads one of them -> answers, tried again by
 * the retrier. Partitions are chosen anew at every try, and a node that has answered is not asked again: what is then
 * placed on it is on no partition, though the send resolves. What a node stored before an error of another partition
 * is stored again. A record whose partition does not exist is left out, and the send resolves without it.
 */
import type { BrokerHandle } from './broker-pool'
import type { Cluster } from './cluster'
import { checkCodec } from './codecs'
import { KafkaJSError, KafkaJSMetadataNotLoaded, KafkaJSNonRetriableError, isStaleMetadata, nameOf } from './errors'
import type { EosManager } from './eos-manager'
import { encodeBytes, encodeHeaders } from './headers'
import type { NewRecord } from './log'
import type { Retrier } from './retrier'
import { storeBatches, type PartitionBatch } from './store-batches'
import type { OutgoingMessage, Partitioner, RecordMetadata } from './types'

export interface ProducerBatch {
  topicMessages?: { topic: string; messages: OutgoingMessage[] }[]
  acks?: number
  timeout?: number
  compression?: number
}

export interface ProducerRecord {
  topic: string
  messages: OutgoingMessage[]
  acks?: number
  timeout?: number
  compression?: number
}

export interface MessageProducer {
  send(record: ProducerRecord): Promise<RecordMetadata[]>
  sendBatch(batch: ProducerBatch): Promise<RecordMetadata[]>
}

export type ConnectionState = 'connected' | 'disconnecting' | 'disconnected'

export interface MessageProducerSettings {
  readonly cluster: Cluster
  readonly partitioner: Partitioner
  readonly eos: EosManager
  readonly idempotent: boolean
  readonly retrier: Retrier
  readonly connection: () => ConnectionState
}

/** Messages of a topic by the partition they were given. */
interface Placed {
  readonly topic: string
  readonly partition: number
  readonly messages: readonly OutgoingMessage[]
}

type Answers = Map<BrokerHandle, RecordMetadata[] | undefined>

export function createMessageProducer(settings: MessageProducerSettings): MessageProducer {
  const { cluster, partitioner, eos, idempotent, retrier, connection } = settings

  /** By leader, as the metadata knows it now. */
  function place(topic: string, messages: readonly OutgoingMessage[]): Map<number, Placed[]> {
    const partitionMetadata = cluster.findTopicPartitionMetadata(topic)
    if (partitionMetadata.length === 0) throw new KafkaJSMetadataNotLoaded('Producing to topic without metadata')
    const chosen: Record<string, OutgoingMessage[]> = {}
    for (const message of messages) {
      ;(chosen[partitioner({ topic, partitionMetadata, message })] ??= []).push(message)
    }
    const byLeader = Object.entries(cluster.findLeaderForPartitions(topic, Object.keys(chosen)))
    const placedOn = (partition: number): Placed => ({ topic, partition, messages: chosen[partition] ?? [] })
    return new Map(byLeader.map(([node, partitions]) => [Number(node), partitions.map(placedOn)]))
  }

  /** `answers`: by node, of this try and of those before it. */
  async function publish(
    topicMessages: readonly ProducerRecord[],
    { acks = -1, compression }: Pick<ProducerBatch, 'acks' | 'compression'>,
    answers: Answers,
  ): Promise<void> {
    await cluster.refreshMetadataIfNecessary()
    const placed: Map<number, Placed[]>[] = []
    for (const { topic, messages } of topicMessages) {
      const byLeader = place(topic, messages)
      placed.push(byLeader)
      for (const node of byLeader.keys()) {
        const handle = await cluster.findBroker({ nodeId: node })
        if (!answers.has(handle)) answers.set(handle, undefined)
      }
    }
    const asked = [...answers].filter(([, answer]) => answer === undefined).map(([handle]) => handle)
    await Promise.all(
      asked.map(async (handle) => {
        const mine = placed.flatMap((byLeader) => byLeader.get(handle.nodeId) ?? [])
        const unlock = await eos.lock(handle.nodeId)
        try {
          answers.set(handle, await askToStore(handle.nodeId, mine, acks, compression))
        } catch (e) {
          answers.delete(handle)
          throw e
        } finally {
          unlock()
        }
      }),
    )
  }

  async function askToStore(
    node: number,
    placed: readonly Placed[],
    acks: number,
    compression: number | undefined,
  ): Promise<RecordMetadata[]> {
    await eos.addPartitions(placed)
    const marks = placed.map(({ topic, partition, messages }) => {
      const mark = eos.mark(topic, partition)
      eos.countOn(topic, partition, messages.length)
      return mark
    })
    try {
      checkCodec(compression)
      const batches: PartitionBatch[] = placed.map(({ topic, partition, messages }, i) => ({
        topic,
        partition,
        records: encode(messages, cluster.broker.clock.now()),
        by: marks[i] as PartitionBatch['by'],
        compression,
      }))
      const { transactionalId } = eos
      const answer = await cluster.send(
        {
          kind: 'publish',
          api: 'Produce',
          label: `publish to ${[...new Set(batches.map(({ topic }) => topic))].join(', ')}`,
          node,
          topics: batches.map(({ topic, partition }) => ({ topic, partitions: [partition] })),
          ...(transactionalId === undefined ? {} : { transactionalId }),
        },
        (fault) => storeBatches(cluster.broker, { node, batches, acks, transactionalId }, fault),
        true,
      )
      return acks === 0 ? [] : answer
    } catch (e) {
      for (const { topic, partition, messages } of placed) eos.countOn(topic, partition, -messages.length)
      throw e
    }
  }

  async function sendBatch({ acks = -1, compression, topicMessages = [] }: ProducerBatch): Promise<RecordMetadata[]> {
    if (topicMessages.some(({ topic }) => !topic)) throw new KafkaJSNonRetriableError('Invalid topic')
    if (idempotent && acks !== -1) {
      throw new KafkaJSNonRetriableError(
        "Not requiring ack for all messages invalidates the idempotent producer's EoS guarantees",
      )
    }
    check(topicMessages)
    if (connection() === 'disconnecting') {
      throw new KafkaJSNonRetriableError(
        "The producer is disconnecting; therefore, it can't safely accept messages anymore",
      )
    }
    if (connection() === 'disconnected') throw new KafkaJSError('The producer is disconnected')
    const merged = new Map<string, OutgoingMessage[]>()
    for (const { topic, messages } of topicMessages) merged.set(topic, [...(merged.get(topic) ?? []), ...messages])
    const all = [...merged].map(([topic, messages]) => ({ topic, messages }))
    const answers: Answers = new Map()
    return retrier(async (bail) => {
      await cluster.addMultipleTargetTopics([...merged.keys()])
      try {
        await publish(all, { acks, ...(compression !== undefined && { compression }) }, answers)
        return [...answers.values()].flatMap((answer) => answer ?? [])
      } catch (e) {
        if (nameOf(e) === 'KafkaJSConnectionClosedError') cluster.removeBroker(e as { port?: number })
        if (!cluster.isConnected()) {
          await cluster.connect()
          await cluster.refreshMetadata()
          throw e
        }
        if (isStaleMetadata(e) || nameOf(e) === 'KafkaJSMetadataNotLoaded' || isWorthALook(e)) {
          await cluster.refreshMetadata()
          throw e
        }
        if ((e as { retriable?: boolean }).retriable) throw e
        return bail(e)
      }
    })
  }

  return {
    send: async ({ topic, messages, ...rest }) => sendBatch({ ...rest, topicMessages: [{ topic, messages }] }),
    sendBatch,
  }
}

function check(topicMessages: readonly { topic: string; messages?: OutgoingMessage[] }[]): void {
  for (const { topic, messages } of topicMessages) {
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

const isWorthALook = (e: unknown): boolean =>
  nameOf(e) === 'KafkaJSConnectionError' ||
  nameOf(e) === 'KafkaJSConnectionClosedError' ||
  (nameOf(e) === 'KafkaJSProtocolError' && (e as KafkaJSError).retriable)
