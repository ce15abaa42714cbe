import { until } from '../until'
import type { Fault } from './fault'

/**
 * The replicas of every partition are put into another order: the first is preferred, and the controller (which looks every
 * second here, see run.ts) moves the leadership there. Clients find out by an error of a fetch, a produce or a commit.
 */
export const leadersMove: Fault = {
  name: 'leaders-move',
  about: 'the leadership of all partitions, those of the offsets too, moves to another node',
  resource: 'node',
  nodes: [3],
  lastsMs: [500, 2_000],
  excuses: { copies: true, stall: false },
  async begin({ admin, topics, log }, chance) {
    const names = [...topics, '__consumer_offsets']
    const turn = chance.between(1, 2)
    const before = (await admin.fetchTopicMetadata({ topics: names })).topics
    const wanted = new Map<string, number>()
    const reassigned = before.map(({ name, partitions }) => ({
      topic: name,
      partitionAssignment: partitions.map(({ partitionId, replicas }) => {
        const turned = [...replicas.slice(turn), ...replicas.slice(0, turn)]
        wanted.set(`${name}/${partitionId}`, turned[0]!)
        return { partition: partitionId, replicas: turned }
      }),
    }))
    await admin.alterPartitionReassignments({ topics: reassigned })
    const moved = async (): Promise<number> => {
      const now = (await admin.fetchTopicMetadata({ topics: names })).topics
      const all = now.flatMap(({ name, partitions }) =>
        partitions.map(({ partitionId, leader }) => leader === wanted.get(`${name}/${partitionId}`)),
      )
      return all.filter((is) => is).length
    }
    await until('every leader has moved', async () => (await moved()) === wanted.size, 60_000)
    log(`${wanted.size} leaders have moved`)
    return async () => undefined
  },
}
