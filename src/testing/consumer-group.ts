/**
 * A consumer in its group, and its fetches: kafkajs's ConsumerGroup.
 *
 * made -> connected -> joins and syncs (GROUP_JOIN) -> fetches: seeks, looks up positions, polls -> a rebalance, an
 * expired session or stale metadata -> joins again ... -> left. Each sync replaces the assignment and the offset
 * manager; pauses and seeks stay. A crash throws this object away, and a restart makes a new one.
 *
 * Must never happen: a poll that sleeps through news (a rebalance, a resume, a stop), since virtual time does not wake
 * it as kafkajs's wait does; a session that runs while its member polls.
 */
import { Batch } from './batch'
import {
  isRebalancing,
  KafkaJSError,
  KafkaJSOffsetOutOfRange,
  KafkaJSStaleTopicMetadataAssignment,
  nameOf,
  typeOf,
} from './errors'
import { CONSUMER_EVENTS } from './events'
import { Membership, type MembershipSettings } from './membership'
import { OffsetManager, type CommitSettings } from './offset-manager'
import type { FetchedPartition, FetchPartition } from './poll'
import { createRetrier, type Retrier, type RetryOptions } from './retrier'
import { SubscriptionState } from './subscription-state'
import type { TopicOffsets, TopicPartitions, TopicSelection } from './types'

const { GROUP_JOIN, CONNECT, COMMIT_OFFSETS } = CONSUMER_EVENTS

/** Errors of a fetch that mean: what I know of the topics is old. */
const STALE_METADATA = ['LEADER_NOT_AVAILABLE', 'NOT_LEADER_FOR_PARTITION', 'UNKNOWN_TOPIC_OR_PARTITION']

export interface GroupSettings extends MembershipSettings, CommitSettings {
  readonly retry: RetryOptions
  readonly maxBytesPerPartition: number
  readonly maxBytes: number
  readonly maxWaitTime: number
}

export class ConsumerGroup {
  private readonly membership: Membership
  private offsets: OffsetManager | undefined
  private readonly subscription = new SubscriptionState()
  private readonly seeks = new Map<string, { topic: string; partition: number; offset: string }>()
  private readonly retrier: Retrier
  private crash: Error | undefined
  private readonly sleepers = new Set<() => void>()
  private wakeups = 0
  /** By node: where its next fetch begins among its partitions. */
  private readonly rotations = new Map<number, number>()
  private stopWatching: () => void = () => undefined

  constructor(private readonly settings: GroupSettings) {
    // What makes a join try again passes at once in virtual time: waiting would only make tests move the clock.
    const { slowPolls } = settings.cluster.context
    this.retrier = createRetrier(this.clock, settings.retry, slowPolls ? undefined : () => this.clock.turn())
    this.membership = new Membership(settings, () => this.nudgePoll())
  }

  get groupId(): string {
    return this.settings.groupId
  }

  get memberId(): string | null {
    return this.membership.memberId
  }

  /** The broker does not know it any more: the next join is that of a new member. */
  forgetMember(): void {
    this.membership.memberId = null
  }

  async connect(): Promise<void> {
    const { cluster, events } = this.settings
    await cluster.connect()
    events.emit(CONNECT)
    await cluster.refreshMetadataIfNecessary()
    const stops = [
      cluster.onStale(() => this.wake()),
      // The fetchers of other nodes would see it at their next look, which kafkajs's take every few seconds.
      cluster.onNews(() => this.nudgePoll()),
      cluster.broker.onBreak(() => this.membership.tellPolling(), { client: cluster.context }),
    ]
    this.stopWatching = () => stops.forEach((stop) => stop())
  }

  async joinAndSync(): Promise<void> {
    const start = this.clock.now()
    const { membership } = this
    await this.retrier(async (bail) => {
      try {
        await membership.join()
        this.adopt(await membership.sync())
        const assignment = this.subscription.assigned().map(({ topic, partitions }) => [topic, partitions] as const)
        this.settings.events.emit(GROUP_JOIN, {
          groupId: this.groupId,
          memberId: membership.memberId,
          leaderId: membership.leaderId,
          isLeader: membership.isLeader,
          memberAssignment: Object.fromEntries(assignment),
          groupProtocol: membership.groupProtocol,
          duration: this.clock.now() - start,
        })
      } catch (e) {
        if (isRebalancing(e)) throw new KafkaJSError(e as Error)
        if (typeOf(e) === 'UNKNOWN_MEMBER_ID') {
          this.forgetMember()
          throw new KafkaJSError(e as Error)
        }
        bail(e)
      }
    })
  }

  leave(): Promise<void> {
    return this.membership.leave()
  }

  dispose(): void {
    this.stopWatching()
  }

  heartbeat(interval: number): Promise<void> {
    return this.membership.heartbeat(interval)
  }

  nodeIds(): number[] {
    return this.settings.cluster.getNodeIds()
  }

  async fetch(node: number): Promise<Batch[]> {
    this.dieIfAsked()
    // What happens from here on would be missed by the poll, so it ends the poll at once.
    const since = this.wakeups
    try {
      const { cluster } = this.settings
      await cluster.refreshMetadataIfNecessary()
      this.checkForStaleAssignment()
      const mine = this.partitionsOn(node)
      await this.seekOffsets(mine)
      const wanted = this.fetchable(node, mine)
      const answers = wanted.length > 0 ? await this.poll(node, wanted, since) : await this.idle(since)
      this.dieIfAsked()
      // What did not fit comes first the next time (kafkajs shuffles for that).
      if (answers.some(({ records, offset, end }) => records.length === 0 && offset < end)) {
        this.rotations.set(node, this.rotationOf(node) + 1)
      }
      return answers
        .filter(({ topic, partition }) => !this.hasSeekOffset(topic, partition) && !this.isPaused(topic, partition))
        .map(
          ({ topic, partition, offset, records, end, aborted }) =>
            new Batch(topic, partition, String(offset), records, end, aborted),
        )
    } catch (e) {
      this.dieIfAsked()
      await this.recoverFromFetch(e)
      return []
    }
  }

  /** Ends the poll that stands, and the one that is about to; never inside this call. */
  wake(): void {
    this.wakeups++
    for (const wake of this.sleepers) this.clock.soon(wake)
    this.sleepers.clear()
  }

  /** A stop ends the poll, unless polls are to take their time as kafkajs's do. */
  stopPolling(): void {
    this.nudgePoll()
  }

  /** For tests: the consumer dies of this error, in the midst of its next fetch. */
  crashWith(error: Error): void {
    this.crash = error
    this.wake()
  }

  private dieIfAsked(): void {
    if (this.crash !== undefined) throw this.crash
  }

  get crashed(): boolean {
    return this.crash !== undefined
  }

  seek(topic: string, partition: number, offset: string): void {
    this.seeks.set(keyOf(topic, partition), { topic, partition, offset })
    this.nudgePoll()
  }

  hasSeekOffset(topic: string, partition: number): boolean {
    return this.seeks.has(keyOf(topic, partition))
  }

  pause(selection: readonly TopicSelection[]): void {
    this.subscription.pause(selection)
  }

  resume(selection: readonly TopicSelection[]): void {
    this.subscription.resume(selection)
    this.nudgePoll()
  }

  paused(): TopicPartitions[] {
    return this.subscription.paused()
  }

  isPaused(topic: string, partition: number): boolean {
    return this.subscription.isPaused(topic, partition)
  }

  /** What would be fetched next of a partition; undefined where that is not known (yet). */
  position(topic: string, partition: number): bigint | undefined {
    return this.offsets?.position(topic, partition)
  }

  resolveOffset(topic: string, partition: number, offset: unknown): void {
    this.manager.resolveOffset(topic, partition, offset)
    // From outside a handler: the poll that stands was sent with another position, and kafkajs's ends soon.
    if (this.sleepers.size > 0) this.nudgePoll()
  }

  async commitOffsets(offsets?: { topics?: TopicOffsets[] }): Promise<void> {
    await this.manager.commitOffsets(offsets)
  }

  async commitOffsetsIfNecessary(): Promise<void> {
    await this.manager.commitOffsetsIfNecessary()
  }

  uncommittedOffsets(): { topics: TopicOffsets[] } {
    return this.manager.uncommittedOffsets()
  }

  private get clock() {
    return this.settings.cluster.broker.clock
  }

  private get manager(): OffsetManager {
    if (this.offsets === undefined) throw new TypeError("Cannot read properties of null (reading 'resolveOffset')")
    return this.offsets
  }

  private adopt(assignment: TopicPartitions[]): void {
    const { cluster, events } = this.settings
    this.subscription.assign(assignment)
    // A poll that stands at another node is about the assignment before.
    this.nudgePoll()
    this.offsets = new OffsetManager(cluster, this.membership.identity, assignment, this.settings, (payload) =>
      events.emit(COMMIT_OFFSETS, payload),
    )
  }

  /** With kafkajs's own slow polls asked for, nothing but data and time ends a poll. */
  private nudgePoll(): void {
    if (!this.settings.cluster.context.slowPolls) this.wake()
  }

  /** What is assigned, as far as the metadata says that this node leads it. */
  private partitionsOn(node: number): TopicPartitions[] {
    const { cluster } = this.settings
    return this.subscription.assigned().map(({ topic, partitions }) => ({
      topic,
      partitions: cluster.findLeaderForPartitions(topic, partitions)[node] ?? [],
    }))
  }

  private fetchable(node: number, mine: readonly TopicPartitions[]): FetchPartition[] {
    const committed = this.manager.committed()
    const all = mine.flatMap(({ topic, partitions }) =>
      partitions
        .filter((partition) => {
          const ofTopic = committed[topic]
          if (ofTopic === undefined) throw new TypeError(`Cannot read properties of undefined (reading '${partition}')`)
          return ofTopic[partition] != null && !this.isPaused(topic, partition)
        })
        .map((partition) => ({
          topic,
          partition,
          offset: this.manager.nextOffset(topic, partition),
          maxBytes: this.settings.maxBytesPerPartition,
        })),
    )
    const first = all.length > 0 ? this.rotationOf(node) % all.length : 0
    return [...all.slice(first), ...all.slice(0, first)]
  }

  private rotationOf(node: number): number {
    return this.rotations.get(node) ?? 0
  }

  private async poll(node: number, wanted: FetchPartition[], since: number): Promise<FetchedPartition[]> {
    const { cluster, groupId, maxBytes, maxWaitTime } = this.settings
    const broker = await cluster.findBroker({ nodeId: node })
    const { responses } = await broker.fetch({
      maxWaitTime,
      maxBytes,
      topics: wanted.map(({ topic, partition, offset, maxBytes }) => ({
        topic,
        partitions: [{ partition, fetchOffset: String(offset), maxBytes }],
      })),
      group: groupId,
      sleep: (wake) => this.sleep(wake, since),
    })
    return responses.flatMap(({ partitions }) => partitions)
  }

  /** Nothing to fetch: kafkajs sleeps; here it sleeps until something changes. */
  private async idle(since: number): Promise<never[]> {
    const { slowPolls } = this.settings.cluster.context
    if (slowPolls) {
      const stop = this.membership.stopsSession()
      await this.clock.wait(this.settings.maxWaitTime)
      stop()
      return []
    }
    await new Promise<void>((resolve) => {
      const end = this.sleep(() => {
        end()
        resolve()
      }, since)
    })
    return []
  }

  /** Registers a poll; calls `wake` (later, never inside this call) if something has happened since. */
  private sleep(wake: () => void, since: number): () => void {
    const resumeSession = this.membership.stopsSession()
    let ended = false
    const wakeOnce = (): void => {
      if (!ended) wake()
    }
    this.sleepers.add(wakeOnce)
    const { cluster } = this.settings
    const hungUp = cluster.onPoll(() => this.nudgePoll())
    if (this.wakeups !== since || this.membership.news) this.clock.soon(wakeOnce)
    return () => {
      if (ended) return
      ended = true
      hungUp()
      this.sleepers.delete(wakeOnce)
      resumeSession()
    }
  }

  private async recoverFromFetch(e: unknown): Promise<void> {
    const { cluster } = this.settings
    if (STALE_METADATA.includes(typeOf(e) ?? '') || nameOf(e) === 'KafkaJSTopicMetadataNotLoaded') {
      await cluster.refreshMetadata()
      await this.joinAndSync()
    } else if (nameOf(e) === 'KafkaJSStaleTopicMetadataAssignment') {
      await this.joinAndSync()
    } else if (e instanceof KafkaJSOffsetOutOfRange) {
      await this.manager.setDefaultOffset(e.topic, e.partition)
    } else if (nameOf(e) === 'KafkaJSConnectionClosedError') {
      cluster.removeBroker(e as { port?: number })
    } else if (nameOf(e) === 'KafkaJSBrokerNotFound') {
      await cluster.refreshMetadata()
    } else {
      throw e
    }
  }

  private checkForStaleAssignment(): void {
    const { knownPartitions: known } = this.membership
    if (known === undefined) return
    for (const [topic, partitions] of this.membership.partitionsPerTopic()) {
      const unknown = partitions.filter((partition) => !known.get(topic)?.includes(partition))
      if (unknown.length > 0) throw new KafkaJSStaleTopicMetadataAssignment('Topic has been updated', topic, unknown)
    }
  }

  private async seekOffsets(assigned: readonly TopicPartitions[]): Promise<void> {
    for (const { topic, partitions } of assigned) {
      for (const partition of partitions) {
        const entry = this.seeks.get(keyOf(topic, partition))
        if (entry === undefined) continue
        this.seeks.delete(keyOf(topic, partition))
        await this.manager.seek(topic, partition, entry.offset)
      }
    }
    await this.manager.resolveOffsets()
  }
}

const keyOf = (topic: string, partition: number): string => JSON.stringify([topic, partition])
