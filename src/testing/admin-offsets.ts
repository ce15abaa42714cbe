/** The admin client's part about offsets: of groups and of topics. */
import { need, needName } from './admin-checks'
import type { Cluster } from './cluster'
import { describeGroup } from './describe-group'
import {
  isStaleMetadata,
  KafkaJSBrokerNotFound,
  KafkaJSDeleteTopicRecordsError,
  KafkaJSNonRetriableError,
  protocolError,
  typeOf,
  type DeleteRecordsFailure,
  type KafkaJSError,
} from './errors'
import { commitOffsets, fetchOffsets, toBigInt } from './offset-manager'
import type { Retrier } from './retrier'
import type { PartitionOffset } from './types'

export interface AdminOffsets {
  fetchOffsets(options: {
    groupId: string
    topics?: string[]
    resolveOffsets?: boolean
  }): Promise<{ topic: string; partitions: (PartitionOffset & { metadata: string | null })[] }[]>
  fetchTopicOffsets(topic: string): Promise<(PartitionOffset & { high: string; low: string })[]>
  fetchTopicOffsetsByTimestamp(topic: string, timestamp?: number): Promise<PartitionOffset[]>
  setOffsets(options: { groupId: string; topic: string; partitions: PartitionOffset[] }): Promise<void>
  resetOffsets(options: { groupId: string; topic: string; earliest?: boolean }): Promise<void>
  deleteTopicRecords(options: { topic: string; partitions: PartitionOffset[] }): Promise<void>
}

export function createAdminOffsets(cluster: Cluster, retrier: Retrier): AdminOffsets {
  async function partitionsOf(topic: string): Promise<number[]> {
    await cluster.addTargetTopic(topic)
    await cluster.refreshMetadataIfNecessary()
    return cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId)
  }

  /** Where the partitions of a topic stand; kafkajs asks for the ends and then for the starts. */
  async function positions(topic: string, at: { fromBeginning: boolean } | { fromTimestamp: number }) {
    const partitions = cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => ({ partition: partitionId }))
    const [found] = await cluster.fetchTopicsOffset([{ topic, partitions, ...at }])
    return found?.partitions ?? []
  }

  /** A topic that is not there may be about to come, so kafkajs looks again; anything else is final. */
  const lookUp = <T>(topic: string, read: () => Promise<T>): Promise<T> =>
    retrier(async (bail) => {
      try {
        await partitionsOf(topic)
        return await read()
      } catch (e) {
        if (typeOf(e) !== 'UNKNOWN_TOPIC_OR_PARTITION') return bail(e)
        await cluster.refreshMetadata()
        throw e
      }
    })

  async function fetchTopicOffsets(topic: string) {
    needName(topic)
    return lookUp(topic, async () => {
      const high = await positions(topic, { fromBeginning: false })
      const low = await positions(topic, { fromBeginning: true })
      return high.map(({ partition, offset }) => ({
        partition,
        offset,
        high: offset,
        low: low.find((one) => one.partition === partition)?.offset ?? '0',
      }))
    })
  }

  async function setOffsets({ groupId, topic, partitions }: Parameters<AdminOffsets['setOffsets']>[0]) {
    need(groupId, 'groupId')
    need(topic, 'topic')
    if (!partitions || partitions.length === 0) throw new KafkaJSNonRetriableError('Invalid partitions')
    await cluster.addTargetTopic(topic)
    const { state } = await retrier(() => describeGroup(cluster, groupId))
    if (state !== 'Empty' && state !== 'Dead') {
      throw new KafkaJSNonRetriableError(`The consumer group must have no running instances, current state: ${state}`)
    }
    for (const { offset } of partitions) {
      const value = toBigInt(offset)
      if (value < -2n) throw new KafkaJSNonRetriableError('Offset must not be a negative number')
    }
    // kafkajs joins the group with a consumer of its own for this; the outcome is a commit without a member.
    const node = await cluster.findGroupCoordinator(groupId)
    await commitOffsets(cluster, { groupId, generationId: -1, memberId: '', node }, [{ topic, partitions }])
  }

  return {
    async fetchOffsets({ groupId, topics = [], resolveOffsets = false }) {
      need(groupId, 'groupId')
      if (!Array.isArray(topics)) throw new KafkaJSNonRetriableError('Expected topics array to be set')
      const node = await cluster.findGroupCoordinator(groupId)
      const wanted = []
      for (const topic of topics) wanted.push({ topic, partitions: await partitionsOf(topic) })
      let found = await fetchOffsets(cluster, { groupId, node }, wanted)
      if (resolveOffsets) {
        found = await Promise.all(
          found.map(async ({ topic, partitions }) => {
            const ends = await fetchTopicOffsets(topic)
            const resolved = partitions.map((one) => {
              const end = ends.find(({ partition }) => partition === one.partition)
              const offset = one.offset === '-2' ? end?.low : one.offset === '-1' ? end?.high : one.offset
              return { ...one, offset: offset ?? one.offset }
            })
            await setOffsets({ groupId, topic, partitions: resolved })
            return { topic, partitions: resolved }
          }),
        )
      }
      return found.map(({ topic, partitions }) => ({
        topic,
        partitions: partitions.map(({ partition, offset, metadata }) => ({
          partition,
          offset,
          metadata: metadata || null,
        })),
      }))
    },

    fetchTopicOffsets,

    async fetchTopicOffsetsByTimestamp(topic, timestamp) {
      needName(topic)
      return lookUp(topic, async () => {
        const high = await positions(topic, { fromBeginning: false })
        const found = await positions(
          topic,
          timestamp == null ? { fromBeginning: false } : { fromTimestamp: timestamp },
        )
        return found.map(({ partition, offset }) => ({
          partition,
          // Nothing that new: the end of the log.
          offset: toBigInt(offset) >= 0n ? offset : (high.find((one) => one.partition === partition)?.offset ?? '0'),
        }))
      })
    },

    setOffsets,

    async resetOffsets({ groupId, topic, earliest = false }) {
      need(groupId, 'groupId')
      need(topic, 'topic')
      const offset = String(cluster.defaultOffset({ fromBeginning: earliest }))
      const partitions = (await partitionsOf(topic)).map((partition) => ({ partition, offset }))
      await setOffsets({ groupId, topic, partitions })
    },

    async deleteTopicRecords({ topic, partitions }) {
      if (!topic || typeof topic !== 'string') throw new KafkaJSNonRetriableError(`Invalid topic "${String(topic)}"`)
      if (!partitions || partitions.length === 0) throw new KafkaJSNonRetriableError('Invalid partitions')
      const ids = partitions.map(({ partition }) => partition)
      const byLeader = Object.entries(cluster.findLeaderForPartitions(topic, ids))
      const found = byLeader.flatMap(([, own]) => own)
      await fetchTopicOffsets(topic)
      const lost = partitions
        .filter(({ partition }) => !found.includes(partition))
        .map(({ partition, offset }) => ({
          partition,
          offset,
          error: new KafkaJSBrokerNotFound('Could not find the leader for the partition', { retriable: false }),
        }))
      if (lost.length > 0) throw new KafkaJSDeleteTopicRecordsError(lost)
      // A node that has done its part is not asked again, also where a leader has moved to it since.
      const done = new Set<string>()
      await retrier(async () => {
        const failed = await Promise.all(
          byLeader
            .filter(([node]) => !done.has(node))
            .map(async ([node, own]) => {
              const mine = partitions.filter(({ partition }) => own.includes(partition))
              const answer = await askToDelete(cluster, Number(node), topic, mine)
              if (answer.length === 0) done.add(node)
              return answer
            }),
        )
        const all = failed.flat()
        if (all.length === 0) return
        if (all.some(({ error }) => isStaleMetadata(error))) await cluster.refreshMetadata()
        throw new KafkaJSDeleteTopicRecordsError(all)
      })
    },
  }
}

function askToDelete(
  cluster: Cluster,
  node: number,
  topic: string,
  partitions: readonly PartitionOffset[],
): Promise<DeleteRecordsFailure[]> {
  const ids = partitions.map(({ partition }) => partition)
  return cluster.send(
    {
      kind: 'admin',
      api: 'DeleteRecords',
      label: `deletion of records of ${topic}`,
      node,
      topics: [{ topic, partitions: ids }],
    },
    () => deleteRecords(cluster, node, topic, partitions),
  )
}

function deleteRecords(
  cluster: Cluster,
  node: number,
  topic: string,
  partitions: readonly PartitionOffset[],
): DeleteRecordsFailure[] {
  const failed: DeleteRecordsFailure[] = []
  for (const { partition, offset } of partitions) {
    try {
      const { topics } = cluster.broker
      topics.checkLeader(topic, partition, node)
      const log = topics.partition(topic, partition)
      if (log === undefined) throw protocolError('UNKNOWN_TOPIC_OR_PARTITION')
      const before = toBigInt(offset)
      log.deleteBefore(before === -1n ? log.end : before)
    } catch (e) {
      failed.push({ partition, offset, error: e as KafkaJSError })
    }
  }
  return failed
}
