/**
 * A producer's identity at the broker, its sequence numbers and its transaction: kafkajs's EosManager.
 *
 * UNINITIALIZED -> (an id from the broker) -> READY -> TRANSACTING -> COMMITTING or ABORTING -> READY
 * As in kafkajs an end whose request fails stays in COMMITTING or ABORTING, and the producer never begins another.
 * A sequence number is taken when a request is made and given back when it fails, whatever the broker did with it.
 */
import assert from 'node:assert'
import type { Cluster } from './cluster'
import { KafkaJSNonRetriableError, typeOf } from './errors'
import type { CommitTopic } from './group-offsets'
import { Lock } from './lock'
import { toBigInt } from './offset-manager'
import type { ProducerMark } from './producer-states'
import { createRetrier, type Retrier } from './retrier'
import type { TopicOffsets, TopicPartitions } from './types'

type State = 'UNINITIALIZED' | 'READY' | 'TRANSACTING' | 'COMMITTING' | 'ABORTING'

const NO_ID = -1n
const LOCK_TIMEOUT = 65_535
const HIGHEST_SEQUENCE = 2 ** 31 - 1
const TRY_AGAIN_FOR_AN_ID = [
  'NOT_COORDINATOR_FOR_GROUP',
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'GROUP_LOAD_IN_PROGRESS',
  'CONCURRENT_TRANSACTIONS',
]

export interface EosSettings {
  readonly cluster: Cluster
  /** `undefined`: idempotent and no more. */
  readonly transactionalId: string | undefined
  readonly transactionTimeout: number
}

export class EosManager {
  private state: State = 'UNINITIALIZED'
  private producerId = NO_ID
  private epoch = 0
  private sequences = new Map<string, number>()
  private locks = new Map<number, Lock>()
  private joined = new Set<string>()
  private offsetsJoined = false
  private readonly retrier: Retrier

  constructor(private readonly settings: EosSettings) {
    // kafkajs means the client's retries here and takes its own defaults.
    this.retrier = createRetrier(settings.cluster.broker.clock)
  }

  get transactionalId(): string | undefined {
    return this.settings.transactionalId
  }

  isInitialized(): boolean {
    return this.producerId !== NO_ID
  }

  isInTransaction(): boolean {
    return this.state === 'TRANSACTING'
  }

  async initProducerId(): Promise<void> {
    this.allow('initProducerId', 'UNINITIALIZED', 'READY')
    const { cluster, transactionalId, transactionTimeout } = this.settings
    const { transactions } = cluster.broker
    const about = { kind: 'initProducer', api: 'InitProducerId', label: 'a producer id' } as const
    await this.retrier(async (bail) => {
      try {
        await cluster.refreshMetadataIfNecessary()
        const found =
          transactionalId === undefined
            ? await cluster.sendToController(about, () => ({ producerId: transactions.newProducerId(), epoch: 0 }))
            : await this.askCoordinator({ ...about, transactionalId }, () =>
                transactions.init(transactionalId, transactionTimeout),
              )
        this.moveTo('READY')
        this.producerId = found.producerId
        this.epoch = found.epoch
        this.sequences = new Map()
        this.locks = new Map()
      } catch (e) {
        if (TRY_AGAIN_FOR_AN_ID.includes(typeOf(e) ?? '')) throw e
        bail(e)
      }
    })
  }

  beginTransaction(): void {
    this.allow('beginTransaction', 'READY')
    this.moveTo('TRANSACTING')
  }

  /** Whose the next batch for a partition is. */
  mark(topic: string, partition: number): ProducerMark {
    return {
      producerId: this.producerId,
      epoch: this.epoch,
      sequence: this.sequences.get(keyOf(topic, partition)) ?? 0,
      transactional: this.transactionalId !== undefined,
    }
  }

  /** `by` may be below 0: the request has failed. */
  countOn(topic: string, partition: number, by: number): void {
    if (!this.isInitialized()) return
    const next = (this.sequences.get(keyOf(topic, partition)) ?? 0) + by
    this.sequences.set(keyOf(topic, partition), next >= HIGHEST_SEQUENCE ? 0 : next)
  }

  /** One request at a time to each node, so that sequence numbers arrive in order. */
  async lock(node: number): Promise<() => void> {
    if (!this.isInitialized()) return () => undefined
    const lock = this.locks.get(node) ?? new Lock(this.settings.cluster.broker.clock, LOCK_TIMEOUT)
    this.locks.set(node, lock)
    await lock.acquire()
    return () => lock.release()
  }

  async addPartitions(batches: readonly { topic: string; partition: number }[]): Promise<void> {
    const { transactionalId } = this.settings
    if (transactionalId === undefined) return
    this.allow('addPartitionsToTransaction', 'TRANSACTING')
    const added = batches.filter(({ topic, partition }) => !this.joined.has(keyOf(topic, partition)))
    if (added.length > 0) {
      const byTopic = new Map<string, number[]>()
      for (const { topic, partition } of added) byTopic.set(topic, [...(byTopic.get(topic) ?? []), partition])
      const topics: TopicPartitions[] = [...byTopic].map(([topic, partitions]) => ({ topic, partitions }))
      const label = `partitions for transaction ${transactionalId}`
      await this.askCoordinator(
        { kind: 'addPartitions', api: 'AddPartitionsToTxn', label, transactionalId, topics },
        (transactions) => transactions.addPartitions(transactionalId, this.producerId, this.epoch, topics),
      )
    }
    for (const { topic, partition } of added) this.joined.add(keyOf(topic, partition))
  }

  async sendOffsets({ consumerGroupId, topics }: { consumerGroupId: string; topics: TopicOffsets[] }): Promise<void> {
    this.allow('sendOffsets', 'TRANSACTING')
    assert(consumerGroupId, 'Missing consumerGroupId')
    assert(topics, 'Missing offset topics')
    const { cluster } = this.settings
    const transactionalId = this.settings.transactionalId ?? ''
    const { producerId, epoch } = this
    await this.askCoordinator(
      {
        kind: 'addOffsets',
        api: 'AddOffsetsToTxn',
        label: `group ${consumerGroupId} for transaction ${transactionalId}`,
        transactionalId,
        group: consumerGroupId,
      },
      (transactions) => transactions.addGroup(transactionalId, producerId, epoch, consumerGroupId),
    )
    this.offsetsJoined = true
    let node = await cluster.findGroupCoordinator(consumerGroupId)
    await this.retrier(async (bail) => {
      try {
        const wanted = offsetsOf(topics)
        await cluster.send(
          {
            kind: 'txnOffsets',
            api: 'TxnOffsetCommit',
            label: `offsets of ${consumerGroupId} in transaction ${transactionalId}`,
            node,
            transactionalId,
            group: consumerGroupId,
            topics: wanted.map((one) => ({ ...one, partitions: one.partitions.map(({ partition }) => partition) })),
          },
          () => {
            cluster.broker.checkCoordinator(consumerGroupId, node)
            const [refused] = cluster.broker.transactions.commitOffsets(
              transactionalId,
              producerId,
              epoch,
              consumerGroupId,
              wanted,
            )
            if (refused !== undefined) throw cluster.broker.errorOf(refused)
          },
        )
      } catch (e) {
        if (typeOf(e) === 'UNKNOWN_TOPIC_OR_PARTITION') throw e
        if ((e as { code?: unknown }).code === 'ECONNREFUSED') {
          node = await cluster.findGroupCoordinator(consumerGroupId)
          throw e
        }
        bail(e)
      }
    })
  }

  commit(): Promise<void> {
    return this.end('commit', 'COMMITTING')
  }

  abort(): Promise<void> {
    return this.end('abort', 'ABORTING')
  }

  private async end(how: 'commit' | 'abort', state: 'COMMITTING' | 'ABORTING'): Promise<void> {
    this.allow(how, 'TRANSACTING')
    this.moveTo(state)
    if (this.joined.size > 0 || this.offsetsJoined) {
      const transactionalId = this.settings.transactionalId ?? ''
      await this.askCoordinator(
        { kind: 'endTransaction', api: 'EndTxn', label: `${how} of transaction ${transactionalId}`, transactionalId },
        (transactions) => transactions.end(transactionalId, this.producerId, this.epoch, how === 'commit'),
      )
    }
    this.moveTo('READY')
  }

  private async askCoordinator<T>(
    request: Omit<Parameters<Cluster['send']>[0], 'node'> & { transactionalId: string },
    act: (transactions: Cluster['broker']['transactions']) => T,
  ): Promise<T> {
    const { cluster } = this.settings
    const node = await cluster.findGroupCoordinator(request.transactionalId)
    return cluster.send({ ...request, node }, () => {
      cluster.broker.checkCoordinator(request.transactionalId, node)
      return act(cluster.broker.transactions)
    })
  }

  private allow(method: string, ...states: State[]): void {
    if (states.includes(this.state)) return
    throw new KafkaJSNonRetriableError(`Transaction state exception: Cannot call "${method}" in state "${this.state}"`)
  }

  private moveTo(state: State): void {
    if (!NEXT[this.state].includes(state)) {
      throw new KafkaJSNonRetriableError(`Transaction state exception: Invalid transition ${this.state} --> ${state}`)
    }
    this.state = state
    if (state !== 'READY') return
    this.joined = new Set()
    this.offsetsJoined = false
  }
}

const NEXT: Readonly<Record<State, readonly State[]>> = {
  UNINITIALIZED: ['READY'],
  READY: ['READY', 'TRANSACTING'],
  TRANSACTING: ['COMMITTING', 'ABORTING'],
  COMMITTING: ['READY'],
  ABORTING: ['READY'],
}

const keyOf = (topic: string, partition: number): string => JSON.stringify([topic, partition])

function offsetsOf(topics: readonly TopicOffsets[]): CommitTopic[] {
  return topics.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map(({ partition, offset, metadata = null }) => ({
      partition: Number(partition),
      offset: toBigInt(offset),
      metadata,
    })),
  }))
}
