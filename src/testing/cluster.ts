/**
 * A client's view of the cluster: its connection, the topics it asks for, and what it last heard of them.
 *
 * disconnected -> connect (tried again while the broker is down) -> connected -> the connection breaks, or the client
 * disconnects -> disconnected. A request in the disconnected state connects first, as kafkajs's broker pool does.
 * Metadata is what was last answered, and grows old; it is never looked up behind the client's back.
 */
import type { Timer } from '../ports'
import { ADDRESS, connectionRefused, type FakeBroker, type Request } from './broker'
import { KafkaJSMetadataNotLoaded, nameOf, protocolError, typeOf } from './errors'
import type { Fault, RequestKind } from './faults'
import type { Topic } from './log'
import { createRetrier, type Retrier, type RetryOptions } from './retrier'
import type { FakeCluster, PartitionMetadata } from './types'

export const NODE = 1
const EARLIEST = -2
const LATEST = -1
const REQUEST_TIMEOUT = 30_000
const HELD: ReadonlySet<RequestKind> = new Set<RequestKind>(['sync', 'heartbeat', 'leave'])

export interface PartitionPosition {
  topic: string
  partitions: { partition: number; offset: string }[]
}

export interface PositionQuery {
  topic: string
  partitions: { partition: number }[]
  fromBeginning?: boolean
  fromTimestamp?: number
}

/** What all clients made from one `Kafka` object share. */
export interface ClientContext {
  readonly broker: FakeBroker
  readonly clientId: string
  readonly retry: RetryOptions | undefined
  /** Committed offsets by group: shared, as in kafkajs, by all consumers of one client (and one group id). */
  readonly committed: Map<string, Record<string, Record<string, unknown>>>
  /** Copy the waits of kafkajs's polls too (traps 3 and 9). */
  readonly slowPolls: boolean
}

export class Cluster implements FakeCluster {
  targetTopics = new Set<string>()
  private connected = false
  private hangUp: () => void = () => undefined
  private metadata: Map<string, PartitionMetadata[]> | undefined
  private expireAt: number | undefined
  private readonly retrier: Retrier
  private readonly pending = new Set<Promise<unknown>>()
  private readonly polls = new Set<() => void>()
  private refreshing: Promise<void> | undefined
  private connecting: Promise<void> | undefined
  private adding: Promise<void> = Promise.resolve()

  constructor(
    readonly context: ClientContext,
    private readonly metadataMaxAge = 0,
  ) {
    this.retrier = createRetrier(context.broker.clock, context.retry)
  }

  get broker(): FakeBroker {
    return this.context.broker
  }

  isConnected(): boolean {
    return this.connected
  }

  async connect(): Promise<void> {
    if (this.connected) return
    this.connecting ??= this.retrier(() => this.connectOnce()).finally(() => (this.connecting = undefined))
    return this.connecting
  }

  private async connectOnce(): Promise<void> {
    const work = this.broker.clock.track(() => `connect to ${ADDRESS}`)
    try {
      await this.broker.clock.turn()
      if (!this.broker.reaches(this.context)) throw connectionRefused()
      this.connected = true
      this.hangUp = this.broker.onBreak(() => this.connectionLost(), this.context)
    } finally {
      work.done()
    }
  }

  /** Waits for the answers that are still out, as kafkajs does; a poll that would stand for ever is ended. */
  async disconnect(): Promise<void> {
    const pending = [...this.pending]
    for (const hangUp of [...this.polls]) hangUp()
    await Promise.allSettled(pending)
    this.connectionLost()
    this.metadata = undefined
  }

  async send<T>(request: Request, act: (fault: Fault | undefined) => T | Promise<T>, partly = false): Promise<T> {
    // What kafkajs asks of a broker that it holds in its hand gets one try; all else looks for a broker with patience.
    if (!this.connected) await (HELD.has(request.kind) ? this.connectOnce() : this.connect())
    const timeout = request.timeout ?? REQUEST_TIMEOUT
    const line = { client: this.context, connection: this }
    const sent = this.broker.request({ ...request, ...line, timeout }, act, partly)
    this.pending.add(sent)
    try {
      return await sent
    } catch (e) {
      if (nameOf(e) === 'KafkaJSConnectionClosedError') this.connectionLost()
      throw e
    } finally {
      this.pending.delete(sent)
    }
  }

  /** `hangUp` is called when the client disconnects while the poll still stands. */
  onPoll(hangUp: () => void): () => void {
    this.polls.add(hangUp)
    return () => void this.polls.delete(hangUp)
  }

  connectionLost(): void {
    this.hangUp()
    this.connected = false
    this.expireAt = undefined
  }

  async refreshMetadata(): Promise<void> {
    this.refreshing ??= this.loadMetadata([...this.targetTopics]).finally(() => (this.refreshing = undefined))
    return this.refreshing
  }

  async refreshMetadataIfNecessary(topics: readonly string[] = [...this.targetTopics]): Promise<void> {
    const { metadata, expireAt } = this
    const now = this.broker.clock.now()
    // Without a max age kafkajs asks anew each millisecond; virtual time may stand still for longer than that.
    const old = expireAt === undefined || now > expireAt || (this.metadataMaxAge === 0 && now === expireAt)
    if (metadata === undefined || old || !topics.every((topic) => metadata.has(topic))) {
      await this.loadMetadata([...topics])
    }
  }

  /** Metadata of these topics (of all, where none is named), past the cache. */
  async fetchMetadata(topics: readonly string[]): Promise<Map<string, PartitionMetadata[]>> {
    return this.send(
      {
        kind: 'metadata',
        api: 'Metadata',
        label: `metadata of ${topics.join(', ') || 'all topics'}`,
        topics: topics.map((topic) => ({ topic })),
      },
      () => {
        const store = this.broker.topics
        const names = topics.length > 0 ? topics : store.names()
        return new Map(names.map((name) => [name, describe(store.get(name))]))
      },
    )
  }

  async addTargetTopic(topic: string): Promise<void> {
    return this.addMultipleTargetTopics([topic])
  }

  /** One at a time: a second call must not be answered with the metadata that the first one asked for. */
  async addMultipleTargetTopics(topics: readonly string[]): Promise<void> {
    const mine = this.adding.then(() => this.addTopics(topics))
    this.adding = mine.catch(() => undefined)
    return mine
  }

  private async addTopics(topics: readonly string[]): Promise<void> {
    const before = new Set(this.targetTopics)
    for (const topic of topics) this.targetTopics.add(topic)
    if (before.size === this.targetTopics.size && this.metadata !== undefined) return
    try {
      await this.refreshMetadata()
    } catch (e) {
      const gone = ['INVALID_TOPIC_EXCEPTION', 'UNKNOWN_TOPIC_OR_PARTITION', 'TOPIC_AUTHORIZATION_FAILED']
      if (gone.includes(typeOf(e) ?? '')) this.targetTopics = before
      throw e
    }
  }

  findTopicPartitionMetadata(topic: string): PartitionMetadata[] {
    if (this.metadata === undefined) throw new TopicMetadataNotLoaded()
    return this.metadata.get(topic) ?? []
  }

  /** Partitions by leader; those that the metadata does not know are left out, silently. */
  findLeaderForPartitions(topic: string, partitions: readonly (number | string)[]): Record<string, number[]> {
    const known = this.findTopicPartitionMetadata(topic)
    const found = partitions.map(Number).filter((id) => known.some(({ partitionId }) => partitionId === id))
    return found.length > 0 ? { [NODE]: found } : {}
  }

  getNodeIds(): number[] {
    return [NODE]
  }

  defaultOffset({ fromBeginning }: { fromBeginning?: boolean }): number {
    return fromBeginning ? EARLIEST : LATEST
  }

  async fetchTopicsOffset(queries: readonly PositionQuery[]): Promise<PartitionPosition[]> {
    const known = queries
      .map(({ topic, partitions, fromBeginning, fromTimestamp }) => {
        const ids = this.findLeaderForPartitions(
          topic,
          partitions.map(({ partition }) => partition),
        )[NODE]
        const at = fromTimestamp ?? this.defaultOffset({ fromBeginning: fromBeginning ?? false })
        return { topic, partitions: ids ?? [], at }
      })
      .filter(({ partitions }) => partitions.length > 0)
    if (known.length === 0) return []
    return this.send(
      {
        kind: 'positions',
        api: 'ListOffsets',
        label: `positions of ${known.map(({ topic }) => topic).join(', ')}`,
        topics: known,
      },
      () =>
        known.map(({ topic, partitions, at }) => ({
          topic,
          partitions: partitions.map((partition) => ({ partition, offset: this.positionAt(topic, partition, at) })),
        })),
    )
  }

  /** Calls back when the topics may have changed and this client's metadata has grown old enough to hear of it. */
  onStale(wake: () => void): () => void {
    let timer: Timer | undefined
    const stop = this.broker.topics.onChange(() => {
      timer?.cancel()
      const wait = Math.max(0, (this.expireAt ?? 0) - this.broker.clock.now()) + 1
      timer = this.broker.clock.detached(() => this.broker.clock.after(wait, wake))
    })
    return () => {
      timer?.cancel()
      stop()
    }
  }

  committedOffsets(groupId: string): Record<string, Record<string, unknown>> {
    const found = this.context.committed.get(groupId) ?? {}
    this.context.committed.set(groupId, found)
    return found
  }

  private async loadMetadata(topics: readonly string[]): Promise<void> {
    await this.retrier(async (bail) => {
      try {
        this.metadata = await this.fetchMetadata(topics)
        this.expireAt = this.broker.clock.now() + this.metadataMaxAge
      } catch (e) {
        if (typeOf(e) === 'LEADER_NOT_AVAILABLE') throw e
        bail(e)
      }
    })
  }

  private positionAt(topic: string, partition: number, at: number): string {
    const log = this.broker.topics.partition(topic, partition)
    if (log === undefined) throw protocolError('UNKNOWN_TOPIC_OR_PARTITION')
    if (at === EARLIEST) return String(log.logStart)
    if (at === LATEST) return String(log.end)
    return String(log.offsetAt(at)?.offset ?? -1n)
  }
}

class TopicMetadataNotLoaded extends KafkaJSMetadataNotLoaded {
  constructor() {
    super('Topic metadata not loaded')
    this.name = 'KafkaJSTopicMetadataNotLoaded'
  }
}

function describe(topic: Topic): PartitionMetadata[] {
  return topic.partitions.map((_, partitionId) => ({
    partitionErrorCode: 0,
    partitionId,
    leader: NODE,
    replicas: Array.from({ length: topic.replicas }, (_, i) => NODE + i),
    isr: Array.from({ length: topic.replicas }, (_, i) => NODE + i),
    offlineReplicas: [],
  }))
}
