/**
 * How far the groups of a fake broker have come, and what they have not handled.
 *
 * A consumer of retryline has handled what is committed: it fetches far ahead of its handlers. A plain kafkajs consumer
 * may commit seldom or never, and has handled what lies below its position.
 */
import { STICKY_ASSIGNER } from '../../adapters/kafkajs'
import type { LiveConsumer } from '../fake-consumer'
import type { Inside } from '../inside'
import type { PartitionLog } from '../log'
import { decodeAssignment, decodeMetadata } from '../member-protocol'

export interface Standing {
  readonly groupId: string
  readonly topic: string
  readonly partition: number
  /** Everything below is handled; undefined where that is not known (yet). */
  readonly at: bigint | undefined
  /** The first record that is not handled; undefined where all are. */
  readonly next: bigint | undefined
  /** Why nobody may be handling it, where something speaks for that. */
  readonly why: string | undefined
}

/** The groups that somebody reads for, or read for when it died. */
export function liveGroups({ broker, consumers }: Inside): Set<string> {
  const groups = broker.coordinator.names().filter((name) => broker.coordinator.view(name).members.length > 0)
  const died = consumers.filter((consumer) => consumer.crashedBy() !== undefined).map(({ groupId }) => groupId)
  return new Set([...groups, ...died])
}

/** Of each partition of each topic that a group reads. */
export function standingsOf(inside: Inside, groupId: string): Standing[] {
  const { broker, consumers } = inside
  const { state, members } = broker.coordinator.view(groupId)
  const committed = broker.coordinator.offsetsOf(groupId)
  const owners = members.map(({ memberId, metadata, assignment }) => ({
    consumer: consumers.find((one) => one.groupId === groupId && one.memberId() === memberId),
    topics: metadata.length === 0 ? [] : decodeMetadata(metadata).topics,
    assigned: decodeAssignment(assignment)?.assignment ?? {},
  }))
  const dead = consumers.filter((one) => one.groupId === groupId && one.crashedBy() !== undefined)
  const crash = dead[0]?.crashedBy()
  const read = members.length > 0 ? owners.flatMap(({ topics }) => topics) : dead.flatMap((one) => one.topics())
  // Nobody there, and nobody died: what it has offsets for.
  const topics = read.length > 0 ? read : [...committed.keys()]
  return [...new Set(topics)].flatMap((topic) =>
    (broker.topics.find(topic)?.partitions ?? []).map((log, partition): Standing => {
      const owner = owners.find(({ assigned }) => assigned[topic]?.includes(partition))
      const at = handledUpTo(owner?.consumer, log, topic, partition, committed.get(topic)?.get(partition)?.offset)
      const next = at === undefined ? undefined : firstFrom(log, at)
      const why =
        members.length === 0
          ? `the group has no member${crash === undefined ? '' : `: its consumer died of ${String(crash)}`}`
          : owner === undefined
            ? state === 'Stable'
              ? 'the partition is assigned to nobody'
              : 'the group is rebalancing'
            : owner.consumer?.isPaused(topic, partition)
              ? 'the partition is paused'
              : undefined
      return { groupId, topic, partition, at, next, why }
    }),
  )
}

/** What stands in a transaction that is still open is not there yet. */
function firstFrom(log: PartitionLog, at: bigint): bigint | undefined {
  const end = log.lastStable
  if (at >= end) return undefined
  return log.records.find(({ offset, control }) => offset >= at && offset < end && !control)?.offset
}

function handledUpTo(
  consumer: LiveConsumer | undefined,
  log: PartitionLog,
  topic: string,
  partition: number,
  committed: bigint | undefined,
): bigint | undefined {
  // Negative: what kafkajs commits for 'begin anew'.
  const known = committed !== undefined && committed >= 0n ? committed : undefined
  if (consumer === undefined) return known ?? log.logStart
  if (consumer.assigners.includes(STICKY_ASSIGNER)) return known ?? log.logStart
  return consumer.position(topic, partition) ?? known
}

/** How many records lie from one offset up to another. */
export function countBetween({ broker }: Inside, { topic, partition }: Standing, from: bigint, to: bigint): number {
  const records = broker.topics.partition(topic, partition)?.records ?? []
  return records.filter(({ offset, control }) => !control && offset >= from && offset < to).length
}

export const placeOf = ({ topic, partition, next }: Standing): string => `${topic}/${partition}@${next ?? '?'}`
