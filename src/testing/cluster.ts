/**
 * A client's view of the cluster: the nodes it knows, the topics it asks for, and what it last heard of them.
 *
 * Metadata is what was last answered, and grows old; it is never looked up behind the client's back. Which node a
 * request goes to is what the metadata says, or any that is connected.
 */
import type { Timer } from '../ports'
import { BrokerPool, type BrokerHandle } from './broker-pool'
import type { FakeBroker, Request } from './broker'
import { checkCodec } from './codecs'
import {
  KafkaJSBrokerNotFound,
  KafkaJSGroupCoordinatorNotFound,
  KafkaJSMetadataNotLoaded,
  KafkaJSTopicMetadataNotLoaded,
  nameOf,
  protocolError,
  typeOf,
} from './errors'
import type { Fault, RequestKind } from './faults'
import type { Topic } from './log'
import { NOBODY, type Nodes } from './nodes'
import { openPoll, type FetchAnswer, type FetchRequest } from './poll'
import { createRetrier, type Retrier, type RetryOptions } from './retrier'
import type { FakeCluster, PartitionMetadata } from './types'

const EARLIEST = -2
const LATEST = -1
const REQUEST_TIMEOUT = 30_000
/** What kafkajs asks of a node that it holds in its hand: no look whether the metadata still knows it. */
const HELD: ReadonlySet<RequestKind> = new Set<RequestKind>(['join', 'sync', 'heartbeat', 'leave'])

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
  /** Whether it is told of what is in open transactions, and of what was aborted. */
  readUncommitted = false
  private readonly pool: BrokerPool
  private metadata: Map<string, PartitionMetadata[]> | undefined
  private expireAt: number | undefined
  private readonly retrier: Retrier
  private readonly pending = new Set<Promise<unknown>>()
  private readonly listeners = new Set<() => void>()
  private readonly polls = new Set<() => void>()
  private refreshing: Promise<void> | undefined
  private renewing: Promise<void> | undefined
  private adding: Promise<void> = Promise.resolve()

  constructor(
    readonly context: ClientContext,
    private readonly metadataMaxAge = 0,
  ) {
    this.retrier = createRetrier(context.broker.clock, context.retry)
    this.pool = new BrokerPool(context.broker, context, this.retrier, (node, request) => this.fetch(node, request))
  }

  get broker(): FakeBroker {
    return this.context.broker
  }

  isConnected(): boolean {
    return this.pool.isConnected()
  }

  connect(): Promise<void> {
    return this.pool.connect()
  }

  /** Waits for the answers that are still out, as kafkajs does; a poll that would stand for ever is ended. */
  async disconnect(): Promise<void> {
    const pending = [...this.pending]
    for (const hangUp of [...this.polls]) hangUp()
    await Promise.allSettled(pending)
    this.pool.disconnect()
    this.metadata = undefined
    this.expireAt = undefined
  }

  /** The node of a number, as the metadata knows it, connected. An old view of the cluster is renewed, and told. */
  async findBroker({ nodeId }: { nodeId: number | string }): Promise<BrokerHandle> {
    return this.reach(Number(nodeId))
  }

  /** What its batches are read with is asked for here, as in kafkajs: at the client, when the whole answer is there. */
  private async fetch(node: number, request: FetchRequest): Promise<FetchAnswer> {
    const { maxWaitTime, maxBytes, group, topics, sleep } = request
    const { broker, context, readUncommitted } = this
    const wanted = topics.flatMap(({ topic, partitions }) =>
      partitions.map(({ partition, fetchOffset, maxBytes }) => ({
        topic,
        partition,
        offset: BigInt(fetchOffset),
        maxBytes,
      })),
    )
    const about = {
      kind: 'fetch',
      node,
      api: 'Fetch',
      label: `fetch of ${group}`,
      group,
      topics: wanted.map(({ topic, partition }) => ({ topic, partitions: [partition] })),
      ...(context.slowPolls ? {} : { timeout: Infinity }),
    } as const
    const wait = context.slowPolls || maxWaitTime === 0 ? maxWaitTime : Infinity
    const line = { node, client: context }
    const found = await this.sendOver(node, about, () =>
      openPoll(broker, { wanted, maxBytes, readUncommitted, line, wait, sleep }),
    )
    for (const { records } of found) for (const { batch } of records) checkCodec(batch.codec)
    return { responses: found.map((one) => ({ topicName: one.topic, partitions: [one] })) }
  }

  private async reach(nodeId: number): Promise<BrokerHandle> {
    try {
      return await this.pool.find(nodeId)
    } catch (e) {
      if (nameOf(e) === 'KafkaJSBrokerNotFound' || nameOf(e) === 'KafkaJSConnectionError') await this.refreshMetadata()
      throw e
    }
  }

  /** Its connection has broken: until the next look at the metadata it is not known any more. */
  removeBroker({ port }: { port?: number }): void {
    this.pool.remove(port)
    this.expireAt = undefined
  }

  /**
   * To the node that the request names, or to whichever answers. `act` does it at the broker; it is handed what a
   * fault wants of it, and the node.
   */
  async send<T>(request: Request, act: Act<T>, partly = false): Promise<T> {
    if (request.node === undefined) return this.sendOver(await this.pool.any(), request, act, partly)
    if (HELD.has(request.kind)) await this.pool.hold(request.node)
    else await this.reach(request.node)
    return this.sendOver(request.node, request, act, partly)
  }

  /** To the node that answers for the whole cluster, as far as this client knows. */
  async sendToController<T>(request: Request, act: Act<T>): Promise<T> {
    const node = this.pool.controller
    if (node === undefined) throw new KafkaJSMetadataNotLoaded('Topic metadata not loaded')
    return this.send({ ...request, node }, (fault) => {
      if (this.broker.nodes.controller !== node) throw protocolError('NOT_CONTROLLER')
      return act(fault, node)
    })
  }

  private async sendOver<T>(node: number, request: Request, act: Act<T>, partly = false): Promise<T> {
    const timeout = request.timeout ?? REQUEST_TIMEOUT
    const line = { node, client: this.context, connection: this.pool.lineTo(node, request.kind) }
    const sent = this.broker.request({ ...request, ...line, timeout }, (fault) => act(fault, node), partly)
    this.pending.add(sent)
    try {
      return await sent
    } catch (e) {
      if (nameOf(e) === 'KafkaJSConnectionClosedError') this.pool.lost(node)
      throw e
    } finally {
      this.pending.delete(sent)
    }
  }

  /** The node that coordinates a group, connected. */
  async findGroupCoordinator(groupId: string): Promise<number> {
    return this.retrier(async (bail) => {
      try {
        // kafkajs fails here once, cold, and comes again after 300 ms, which are not waited for.
        if (this.pool.ids().length === 0) await this.refreshMetadata()
        const node = await this.askForCoordinator(groupId)
        return (await this.reach(node)).nodeId
      } catch (e) {
        if (nameOf(e) === 'KafkaJSBrokerNotFound' || typeOf(e) === 'GROUP_COORDINATOR_NOT_AVAILABLE') {
          await this.refreshMetadata()
          throw e
        }
        if (nameOf(e) === 'KafkaJSConnectionError' || nameOf(e) === 'KafkaJSNumberOfRetriesExceeded') throw e
        return bail(e)
      }
    })
  }

  private async askNode(id: number, groupId: string): Promise<number> {
    const about = { kind: 'coordinator', api: 'FindCoordinator', label: `coordinator of ${groupId}` } as const
    return this.sendOver(id, { ...about, group: groupId }, () => {
      const node = this.broker.coordinatorOf(groupId)
      if (!this.broker.nodes.isUp(node)) throw protocolError('GROUP_COORDINATOR_NOT_AVAILABLE')
      return node
    })
  }

  /** The one node whose requests an assigner may send by itself, and the one request: who coordinates a group. */
  async findControllerBroker(): Promise<{ findGroupCoordinator(about: { groupId: string }): Promise<number> }> {
    const node = this.pool.controller
    if (node === undefined) throw new KafkaJSMetadataNotLoaded('Topic metadata not loaded')
    await this.reach(node)
    return { findGroupCoordinator: ({ groupId }) => this.askNode(node, groupId) }
  }

  /** Asks one node after the other; what they say against it is not heard. */
  private async askForCoordinator(groupId: string): Promise<number> {
    const ids = this.pool.ids()
    if (ids.length === 0) throw new KafkaJSBrokerNotFound('No brokers in the broker pool')
    for (const id of ids) {
      await this.reach(id)
      const found = await this.retrier(async (bail) => {
        try {
          return await this.askNode(id, groupId)
        } catch (e) {
          if (typeOf(e) === 'GROUP_COORDINATOR_NOT_AVAILABLE') throw e
          return bail(e)
        }
      }).catch(() => undefined)
      if (found !== undefined) return found
    }
    throw new KafkaJSGroupCoordinatorNotFound('Failed to find group coordinator')
  }

  /** `hangUp` is called when the client disconnects while the poll still stands. */
  onPoll(hangUp: () => void): () => void {
    this.polls.add(hangUp)
    return () => void this.polls.delete(hangUp)
  }

  async refreshMetadata(): Promise<void> {
    this.refreshing ??= this.loadMetadata([...this.targetTopics]).finally(() => (this.refreshing = undefined))
    return this.refreshing
  }

  /** Callers at the same time share one look. */
  async refreshMetadataIfNecessary(): Promise<void> {
    this.renewing ??= this.renew([...this.targetTopics]).finally(() => (this.renewing = undefined))
    return this.renewing
  }

  /** Metadata of these topics (of all, where none is named), past the cache. */
  async fetchMetadata(topics: readonly string[]): Promise<Map<string, PartitionMetadata[]>> {
    await this.renew(topics)
    return (await this.askForMetadata(topics)).topics
  }

  private async renew(topics: readonly string[]): Promise<void> {
    const { metadata, expireAt } = this
    const now = this.broker.clock.now()
    // Without a max age kafkajs asks anew each millisecond; virtual time may stand still for longer than that.
    const old = expireAt === undefined || now > expireAt || (this.metadataMaxAge === 0 && now === expireAt)
    if (metadata === undefined || old || !topics.every((topic) => metadata.has(topic))) {
      await this.loadMetadata(topics)
    }
  }

  private askForMetadata(topics: readonly string[]): Promise<ClusterMetadata> {
    return this.send(
      {
        kind: 'metadata',
        api: 'Metadata',
        label: `metadata of ${topics.join(', ') || 'all topics'}`,
        topics: topics.map((topic) => ({ topic })),
      },
      () => {
        const { topics: store, nodes } = this.broker
        const names = topics.length > 0 ? topics : store.names()
        const found = new Map(names.map((name) => [name, describe(store.get(name), nodes)]))
        if ([...found.values()].flat().some(({ leader }) => leader === NOBODY)) {
          throw protocolError('LEADER_NOT_AVAILABLE')
        }
        return { nodes: nodes.live(), controller: nodes.controller, topics: found }
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
    if (this.metadata === undefined) throw new KafkaJSTopicMetadataNotLoaded()
    return this.metadata.get(topic) ?? []
  }

  /** Partitions by leader; those that the metadata does not know are left out, silently. */
  findLeaderForPartitions(topic: string, partitions: readonly (number | string)[]): Record<string, number[]> {
    const known = this.findTopicPartitionMetadata(topic)
    const byLeader: Record<string, number[]> = {}
    for (const id of partitions.map(Number)) {
      const found = known.find(({ partitionId }) => partitionId === id)
      if (found !== undefined) (byLeader[found.leader] ??= []).push(id)
    }
    return byLeader
  }

  getNodeIds(): number[] {
    return this.pool.ids()
  }

  defaultOffset({ fromBeginning }: { fromBeginning?: boolean }): number {
    return fromBeginning ? EARLIEST : LATEST
  }

  /** One request to each leader; one that is refused refuses all. */
  async fetchTopicsOffset(queries: readonly PositionQuery[]): Promise<PartitionPosition[]> {
    const byNode = new Map<number, { topic: string; partitions: number[]; at: number }[]>()
    for (const { topic, partitions, fromBeginning, fromTimestamp } of queries) {
      const at = fromTimestamp ?? this.defaultOffset({ fromBeginning: fromBeginning ?? false })
      const ids = partitions.map(({ partition }) => partition)
      for (const [node, own] of Object.entries(this.findLeaderForPartitions(topic, ids))) {
        byNode.set(Number(node), [...(byNode.get(Number(node)) ?? []), { topic, partitions: own, at }])
      }
    }
    const answers = await Promise.all([...byNode].map(([node, asked]) => this.askForPositions(node, asked)))
    const merged = new Map<string, PartitionPosition>()
    for (const { topic, partitions } of answers.flat()) {
      merged.set(topic, { topic, partitions: [...(merged.get(topic)?.partitions ?? []), ...partitions] })
    }
    return [...merged.values()]
  }

  private askForPositions(
    node: number,
    asked: readonly { topic: string; partitions: number[]; at: number }[],
  ): Promise<PartitionPosition[]> {
    return this.send(
      {
        kind: 'positions',
        node,
        api: 'ListOffsets',
        label: `positions of ${asked.map(({ topic }) => topic).join(', ')}`,
        topics: asked,
      },
      () =>
        asked.map(({ topic, partitions, at }) => ({
          topic,
          partitions: partitions.map((partition) => {
            this.broker.topics.checkLeader(topic, partition, node)
            return { partition, offset: this.positionAt(topic, partition, at) }
          }),
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

  /** Calls back when this client has learnt of other leaders or nodes, whoever asked. */
  onNews(tell: () => void): () => void {
    this.listeners.add(tell)
    return () => void this.listeners.delete(tell)
  }

  committedOffsets(groupId: string): Record<string, Record<string, unknown>> {
    const found = this.context.committed.get(groupId) ?? {}
    this.context.committed.set(groupId, found)
    return found
  }

  private async loadMetadata(topics: readonly string[]): Promise<void> {
    await this.retrier(async (bail) => {
      try {
        const answer = await this.askForMetadata(topics)
        const before = [this.placesOf(topics), this.pool.ids()]
        this.metadata = answer.topics
        this.pool.update(answer.nodes, answer.controller)
        this.expireAt = this.broker.clock.now() + this.metadataMaxAge
        if (JSON.stringify(before) !== JSON.stringify([this.placesOf(topics), this.pool.ids()])) {
          for (const tell of this.listeners) tell()
        }
      } catch (e) {
        if (typeOf(e) === 'LEADER_NOT_AVAILABLE') throw e
        bail(e)
      }
    })
  }

  /** Who leads what, as far as it is known. */
  private placesOf(topics: readonly string[]): (readonly number[] | undefined)[] {
    return topics.map((topic) => this.metadata?.get(topic)?.map(({ leader }) => leader))
  }

  private positionAt(topic: string, partition: number, at: number): string {
    const log = this.broker.topics.partition(topic, partition)
    if (log === undefined) throw protocolError('UNKNOWN_TOPIC_OR_PARTITION')
    if (at === EARLIEST) return String(log.logStart)
    const end = this.readUncommitted ? log.end : log.lastStable
    if (at === LATEST) return String(end)
    const found = log.offsetAt(at)?.offset
    return String(found !== undefined && found < end ? found : -1n)
  }
}

type Act<T> = (fault: Fault | undefined, node: number) => T | Promise<T>

interface ClusterMetadata {
  readonly nodes: readonly number[]
  readonly controller: number
  readonly topics: Map<string, PartitionMetadata[]>
}

function describe(topic: Topic, nodes: Nodes): PartitionMetadata[] {
  return topic.placements.map(({ leader, replicas, isr }, partitionId) => ({
    partitionErrorCode: 0,
    partitionId,
    leader: nodes.isUp(leader) ? leader : NOBODY,
    replicas: [...replicas],
    isr: [...isr],
    offlineReplicas: replicas.filter((node) => !nodes.isUp(node)),
  }))
}
