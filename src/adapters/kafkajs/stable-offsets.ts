/**
 * Reads committed offsets, nothing that was acknowledged or has ended left out. A plain look-up may be behind:
 *
 * - Before Kafka 4 the coordinator of a group takes over the offsets of a committed transaction a moment after it is over: even
 *   who has just taken its id over may read the offset of before.
 * - From Kafka 4 on a broker that has just become the coordinator answers from below the high watermark that it knows, and as a
 *   follower it was told of that late: acknowledged commits are missing, until its own followers have fetched once.
 *
 * Either way, what stands committed would be done again. A broker takes care where it is asked to (`require_stable`, in version 7 of
 * OffsetFetch), as Java's client always does and kafkajs cannot; the request is made here and sent over kafkajs's own
 * connection to the coordinator.
 */
import { RetrylineError } from '../../errors'
import type { Clock, CommittedOffset, TopicPartition } from '../../ports'
import { askBroker, int32, NO_TAGS, Reader, text, varint, type Api, type RawBroker } from './raw-request'

export const UNSTABLE_OFFSET_COMMIT = 88
/** The coordinator loads, is not available, or is another one now. */
export const NOT_THERE: ReadonlySet<number> = new Set([14, 15, 16])
/** How often it is asked again, and how long, ms. */
const LOOK_EVERY = 20
const LOOK_FOR = 5_000

/** What kafkajs gives a partition assigner: its cluster. A fake one may lack any of it. */
export interface CoordinatorsLike {
  /** Of groups (0, the default) or of transactional ids (1). */
  findGroupCoordinator?(request: { groupId: string; coordinatorType?: 0 | 1 }): Promise<RawBroker>
}

/** Undefined where the cluster, or its brokers, cannot be asked. */
export async function readStable(
  cluster: CoordinatorsLike | undefined,
  groupId: string,
  partitions: readonly TopicPartition[],
  clock: Clock,
): Promise<readonly CommittedOffset[] | undefined> {
  if (typeof cluster?.findGroupCoordinator !== 'function') return undefined
  const until = clock.monotonic() + LOOK_FOR
  for (;;) {
    const answer = await askOnce(cluster, groupId, partitions)
    if (answer === undefined) return undefined
    const { errorCode, offsets } = answer
    const codes = [errorCode, ...offsets.map((one) => one.errorCode)].filter((code) => code !== 0)
    if (codes.length === 0) return offsets
    const passes = codes.every((code) => code === UNSTABLE_OFFSET_COMMIT || NOT_THERE.has(code))
    if (!passes || clock.monotonic() > until) {
      throw new RetrylineError(
        'RETRYLINE_CONNECT',
        `the broker does not tell the offsets of '${groupId}' (${codes[0]})`,
      )
    }
    await new Promise<void>((resolve) => clock.after(LOOK_EVERY, resolve))
  }
}

/** One look, whatever it says. */
export async function askOnce(
  cluster: CoordinatorsLike | undefined,
  groupId: string,
  partitions: readonly TopicPartition[],
): Promise<Answer | undefined> {
  const coordinator = await cluster?.findGroupCoordinator?.({ groupId })
  return coordinator && askBroker(coordinator, OFFSET_FETCH, encode(groupId, partitions))
}

export interface Answer {
  readonly errorCode: number
  readonly offsets: readonly (CommittedOffset & { readonly errorCode: number })[]
}

/** Behind kafkajs's own header, of which this version needs one byte more: no tagged fields. */
export function encode(groupId: string, partitions: readonly TopicPartition[]): Buffer {
  const byTopic = new Map<string, number[]>()
  for (const { topic, partition } of partitions) byTopic.set(topic, [...(byTopic.get(topic) ?? []), partition])
  const topics = [...byTopic].map(([topic, list]) =>
    Buffer.concat([text(topic), varint(list.length + 1), ...list.map(int32), NO_TAGS]),
  )
  const requireStable = Buffer.from([1])
  return Buffer.concat([NO_TAGS, text(groupId), varint(topics.length + 1), ...topics, requireStable, NO_TAGS])
}

/** What comes behind the correlation id. */
export function decode(payload: Buffer): Answer {
  const read = new Reader(payload)
  read.tags()
  read.int32() // throttle time
  const offsets: (CommittedOffset & { errorCode: number })[] = []
  for (let topics = read.varint() - 1; topics > 0; topics--) {
    const topic = read.text() ?? ''
    for (let partitions = read.varint() - 1; partitions > 0; partitions--) {
      const partition = read.int32()
      const offset = read.int64()
      read.int32() // leader epoch
      const metadata = read.text()
      offsets.push({ topic, partition, offset, metadata, errorCode: read.int16() })
      read.tags()
    }
    read.tags()
  }
  return { offsets, errorCode: read.int16() }
}

const OFFSET_FETCH: Api<Answer> = { key: 9, version: 7, name: 'OffsetFetch', decode }
