/**
 * kafkajs's bookkeeping of one generation: which offset was resolved (its next fetch) and which was committed.
 *
 * It is made new at each join. What it knows as committed is shared by all consumers of one client and group id, and a
 * new one empties it: a partition without a known committed offset is not fetched until the broker was asked.
 * Plain objects throughout, so that a partition that is not there fails as it does in kafkajs: with a TypeError.
 */
import type { Cluster } from './cluster'
import { typeOf } from './errors'
import type { CommitTopic } from './group-offsets'
import type { TopicOffsets, TopicPartitions } from './types'

type ByPartition = Record<string, unknown>

export interface Identity {
  readonly groupId: string
  readonly generationId: number
  readonly memberId: string
  /** The node that coordinates the group. */
  readonly node: number
}

export interface CommitSettings {
  readonly autoCommit: boolean
  readonly autoCommitInterval: number | null
  readonly autoCommitThreshold: number | null
  readonly topicConfigurations: Readonly<Record<string, { fromBeginning?: boolean }>>
}

/** kafkajs's Long: what `consumer.commitOffsets` makes of an offset, and what COMMIT_OFFSETS then carries. */
export class Long {
  constructor(readonly value: bigint) {}

  toString(): string {
    return String(this.value)
  }
}

/** As kafkajs's Long.fromValue reads a number, text, bigint or Long. */
export function toBigInt(value: unknown): bigint {
  if (value instanceof Long) return value.value
  if (typeof value === 'number') return Number.isNaN(value) ? 0n : BigInt(value)
  if (value === '') throw new Error('empty string')
  if (value === 'NaN') return 0n
  return BigInt(value as string | bigint)
}

const isInvalid = (offset: unknown): boolean => (!offset && offset !== 0) || toBigInt(offset) < 0n

export class OffsetManager {
  private resolved: Record<string, ByPartition> = {}
  private readonly topics: string[]
  private readonly assignment: Record<string, number[]>
  private lastCommit: number

  constructor(
    private readonly cluster: Cluster,
    private readonly identity: Identity,
    assigned: readonly TopicPartitions[],
    private readonly settings: CommitSettings,
    private readonly onCommit: (payload: object) => void,
  ) {
    this.assignment = Object.fromEntries(assigned.map(({ topic, partitions }) => [topic, partitions]))
    this.topics = Object.keys(this.assignment)
    this.lastCommit = this.now()
    const committed = this.committed()
    for (const topic of Object.keys(committed)) delete committed[topic]
    for (const topic of this.topics) {
      committed[topic] = {}
      this.resolved[topic] = {}
    }
  }

  committed(): Record<string, ByPartition> {
    return this.cluster.committedOffsets(this.identity.groupId)
  }

  nextOffset(topic: string, partition: number): bigint {
    const resolved = must(this.resolved[topic])
    resolved[partition] ||= must(this.committed()[topic])[partition]
    const offset = resolved[partition]
    return isInvalid(offset) ? 0n : toBigInt(offset)
  }

  /** What it would fetch next; undefined where it has not asked yet. Changes nothing, where `nextOffset` notes it. */
  position(topic: string, partition: number): bigint | undefined {
    const offset = this.resolved[topic]?.[partition] ?? this.committed()[topic]?.[partition]
    return isInvalid(offset) ? undefined : toBigInt(offset)
  }

  /** Neither ownership nor order is looked at. */
  resolveOffset(topic: string, partition: number, offset: unknown): void {
    must(this.resolved[topic])[partition] = String(toBigInt(offset) + 1n)
  }

  uncommittedOffsets(): { topics: TopicOffsets[] } {
    const topics = this.topics.map((topic) => ({
      topic,
      partitions: Object.entries(must(this.resolved[topic]))
        .filter(([partition, offset]) => offset !== must(this.committed()[topic])[partition])
        .filter(([, offset]) => toBigInt(offset) >= 0n)
        .map(([partition, offset]) => ({ partition, offset })) as unknown as TopicOffsets['partitions'],
    }))
    return { topics: topics.filter(({ partitions }) => partitions.length > 0) }
  }

  async commitOffsets(offsets: { topics?: TopicOffsets[] } = {}): Promise<void> {
    const { topics = this.uncommittedOffsets().topics } = offsets
    if (topics.length === 0) {
      this.lastCommit = this.now()
      return
    }
    const { groupId, memberId, generationId } = this.identity
    const payload = { groupId, memberId, groupGenerationId: generationId, topics }
    try {
      await this.send(topics)
    } catch (e) {
      if (typeOf(e) === 'NOT_COORDINATOR_FOR_GROUP') await this.cluster.refreshMetadata()
      throw e
    }
    this.onCommit(payload)
    const committed = this.committed()
    for (const { topic, partitions } of topics) {
      const updated = Object.fromEntries(partitions.map(({ partition, offset }) => [partition, offset]))
      committed[topic] = { ...committed[topic], ...updated }
    }
    this.lastCommit = this.now()
  }

  async commitOffsetsIfNecessary(): Promise<void> {
    const { autoCommitInterval, autoCommitThreshold } = this.settings
    const timedOut = autoCommitInterval != null && this.now() >= this.lastCommit + autoCommitInterval
    const reached = autoCommitThreshold != null && this.countResolved() >= BigInt(autoCommitThreshold)
    if (timedOut || reached) await this.commitOffsets()
  }

  /** Where a partition has no offset that can be fetched, asks the group, then the log. */
  async resolveOffsets(): Promise<void> {
    const pending = this.topics
      .map((topic) => ({
        topic,
        partitions: must(this.assignment[topic]).filter((id) => isInvalid(must(this.committed()[topic])[id])),
      }))
      .filter(({ partitions }) => partitions.length > 0)
    if (pending.length === 0) return
    const known = await fetchOffsets(this.cluster, this.identity, pending)
    const unknown = known
      .map(({ topic, partitions }) => ({
        topic,
        fromBeginning: false,
        ...this.settings.topicConfigurations[topic],
        partitions: partitions.filter(({ offset }) => isInvalid(offset)),
      }))
      .filter(({ partitions }) => partitions.length > 0)
    const positions = await this.cluster.fetchTopicsOffset(unknown)
    for (const { topic, partitions } of known) {
      const first = positions.find((position) => position.topic === topic)?.partitions ?? []
      const found = partitions.map(({ partition, offset }) => [
        partition,
        isInvalid(offset) ? first.find((position) => position.partition === partition)?.offset : offset,
      ])
      this.committed()[topic] = { ...this.committed()[topic], ...(Object.fromEntries(found) as ByPartition) }
    }
  }

  async seek(topic: string, partition: number, offset: string): Promise<void> {
    if (!this.assignment[topic]?.includes(partition)) return
    if (!this.settings.autoCommit) {
      this.resolveOffset(topic, partition, toBigInt(offset) - 1n)
      return
    }
    // With auto-commit a seek is a commit, at once and without an event.
    await this.send([{ topic, partitions: [{ partition, offset }] }])
    this.clearOffsets(topic, partition)
  }

  /** The log does not have what was to be fetched: kafkajs commits -1 or -2, wipes the metadata, emits nothing. */
  async setDefaultOffset(topic: string, partition: number): Promise<void> {
    const offset = String(this.cluster.defaultOffset(this.settings.topicConfigurations[topic] ?? {}))
    await this.send([{ topic, partitions: [{ partition, offset }] }])
    this.clearOffsets(topic, partition)
  }

  private clearOffsets(topic: string, partition: number): void {
    delete must(this.committed()[topic])[partition]
    delete must(this.resolved[topic])[partition]
  }

  private countResolved(): bigint {
    let sum = 0n
    for (const topic of this.topics) {
      for (const [partition, offset] of Object.entries(must(this.resolved[topic]))) {
        const committed = must(this.committed()[topic])[partition]
        sum += toBigInt(offset) - (isInvalid(committed) ? 0n : toBigInt(committed))
      }
    }
    return sum
  }

  private async send(topics: readonly TopicOffsets[]): Promise<void> {
    await commitOffsets(this.cluster, this.identity, topics)
  }

  private now(): number {
    return this.cluster.broker.clock.now()
  }
}

/** Fails as a property read of undefined does in kafkajs. */
function must<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError("Cannot read properties of undefined (reading 'partition')")
  return value
}

export async function commitOffsets(
  cluster: Cluster,
  { groupId, generationId, memberId, node }: Identity,
  topics: readonly TopicOffsets[],
): Promise<void> {
  // Read when it is sent: whoever changes the object afterwards does not change the request.
  const wanted: CommitTopic[] = topics.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map(({ partition, offset, metadata = null }) => ({
      partition: Number(partition),
      offset: toBigInt(offset),
      metadata,
    })),
  }))
  const where = wanted.map(({ topic, partitions }) => ({ topic, partitions: partitions.map((p) => p.partition) }))
  await cluster.send(
    { kind: 'commit', api: 'OffsetCommit', label: `commit of ${groupId}`, group: groupId, node, topics: where },
    () => {
      cluster.broker.checkCoordinator(groupId, node)
      const [refused] = cluster.broker.coordinator.commit(groupId, generationId, memberId, wanted)
      if (refused !== undefined) throw cluster.broker.errorOf(refused)
    },
  )
}

/** Committed offsets as the broker has them; '-1' where there is none. Without topics: all that the group has. */
export async function fetchOffsets(
  cluster: Cluster,
  { groupId, node }: Pick<Identity, 'groupId' | 'node'>,
  topics: readonly TopicPartitions[],
): Promise<{ topic: string; partitions: { partition: number; offset: string; metadata: string }[] }[]> {
  return cluster.send(
    { kind: 'offsets', api: 'OffsetFetch', label: `offsets of ${groupId}`, group: groupId, node, topics },
    () => {
      cluster.broker.checkCoordinator(groupId, node)
      const stored = cluster.broker.coordinator.offsetsOf(groupId)
      const asked =
        topics.length > 0 ? topics : [...stored].map(([topic, of]) => ({ topic, partitions: [...of.keys()] }))
      return asked.map(({ topic, partitions }) => ({
        topic,
        partitions: partitions.map((partition) => {
          const found = stored.get(topic)?.get(partition)
          return { partition, offset: String(found?.offset ?? -1n), metadata: found?.metadata ?? '' }
        }),
      }))
    },
  )
}
