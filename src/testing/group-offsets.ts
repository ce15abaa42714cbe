/** The offsets of one group, and the record of every commit that the broker took. They outlive members. */
import type { ProtocolErrorType } from './error-codes'
import type { TopicStore } from './topics'

export interface CommittedOffset {
  readonly offset: bigint
  readonly metadata: string
}

/** One commit as the broker took it, for tests that look at the order of commits. */
export interface CommitRecord extends CommittedOffset {
  readonly topic: string
  readonly partition: number
  /** Empty, and generation -1: a commit of an admin client. */
  readonly memberId: string
  readonly generationId: number
  readonly at: number
}

export interface CommitTopic {
  readonly topic: string
  readonly partitions: readonly {
    readonly partition: number
    readonly offset: bigint
    readonly metadata: string | null
  }[]
}

export type ByTopic = ReadonlyMap<string, ReadonlyMap<number, CommittedOffset>>

/** The broker's `offset.metadata.max.bytes`, which counts characters. */
const LONGEST_METADATA = 4096

interface Pending extends CommittedOffset {
  readonly topic: string
  readonly partition: number
  readonly order: number
}

export class GroupOffsets {
  private readonly stored = new Map<string, Map<number, CommittedOffset>>()
  private readonly records: CommitRecord[] = []
  /** By producer id: what commits when its transaction does. */
  private readonly pending = new Map<bigint, Pending[]>()
  /** When each stored offset arrived, among all of the group. */
  private readonly orders = new WeakMap<CommittedOffset, number>()
  private arrivals = 0

  get all(): ByTopic {
    return this.stored
  }

  get history(): readonly CommitRecord[] {
    return this.records
  }

  /** Each entry for itself; answers the errors of those that were refused. Order and ownership are not looked at. */
  commit(
    topics: TopicStore,
    entries: readonly CommitTopic[],
    by: Pick<CommitRecord, 'memberId' | 'generationId' | 'at'>,
  ): ProtocolErrorType[] {
    return this.each(topics, entries, (topic, partition, committed) =>
      this.store(topic, partition, committed, ++this.arrivals, by),
    )
  }

  commitPending(topics: TopicStore, entries: readonly CommitTopic[], producerId: bigint): ProtocolErrorType[] {
    const pending = this.pending.get(producerId) ?? []
    this.pending.set(producerId, pending)
    return this.each(topics, entries, (topic, partition, committed) => {
      pending.push({ topic, partition, ...committed, order: ++this.arrivals })
    })
  }

  /** What was committed after a pending one had arrived stays, whatever becomes of the transaction. */
  endPending(producerId: bigint, commit: boolean, at: number): void {
    const pending = this.pending.get(producerId) ?? []
    this.pending.delete(producerId)
    if (!commit) return
    for (const { topic, partition, offset, metadata, order } of pending) {
      const before = this.stored.get(topic)?.get(partition)
      if (before !== undefined && (this.orders.get(before) ?? 0) > order) continue
      this.store(topic, partition, { offset, metadata }, order, { memberId: '', generationId: -1, at })
    }
  }

  forgetTopic(topic: string): void {
    this.stored.delete(topic)
    for (const [id, list] of this.pending)
      this.pending.set(
        id,
        list.filter((one) => one.topic !== topic),
      )
  }

  private each(
    topics: TopicStore,
    entries: readonly CommitTopic[],
    take: (topic: string, partition: number, committed: CommittedOffset) => void,
  ): ProtocolErrorType[] {
    const refused: ProtocolErrorType[] = []
    for (const { topic, partitions } of entries) {
      for (const { partition, offset, metadata } of partitions) {
        if (topics.partition(topic, partition) === undefined) refused.push('UNKNOWN_TOPIC_OR_PARTITION')
        else if ((metadata?.length ?? 0) > LONGEST_METADATA) refused.push('OFFSET_METADATA_TOO_LARGE')
        else take(topic, partition, { offset, metadata: metadata ?? '' })
      }
    }
    return refused
  }

  private store(
    topic: string,
    partition: number,
    committed: CommittedOffset,
    order: number,
    by: Pick<CommitRecord, 'memberId' | 'generationId' | 'at'>,
  ): void {
    const ofTopic = this.stored.get(topic) ?? new Map<number, CommittedOffset>()
    this.stored.set(topic, ofTopic.set(partition, committed))
    this.orders.set(committed, order)
    this.records.push({ ...committed, ...by, topic, partition })
  }
}
