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

export class GroupOffsets {
  private readonly stored = new Map<string, Map<number, CommittedOffset>>()
  private readonly records: CommitRecord[] = []

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
    const refused: ProtocolErrorType[] = []
    for (const { topic, partitions } of entries) {
      for (const { partition, offset, metadata } of partitions) {
        if (topics.partition(topic, partition) === undefined) refused.push('UNKNOWN_TOPIC_OR_PARTITION')
        else if ((metadata?.length ?? 0) > LONGEST_METADATA) refused.push('OFFSET_METADATA_TOO_LARGE')
        else {
          const committed = { offset, metadata: metadata ?? '' }
          const ofTopic = this.stored.get(topic) ?? new Map<number, CommittedOffset>()
          this.stored.set(topic, ofTopic.set(partition, committed))
          this.records.push({ ...committed, ...by, topic, partition })
        }
      }
    }
    return refused
  }

  forgetTopic(topic: string): void {
    this.stored.delete(topic)
  }
}
