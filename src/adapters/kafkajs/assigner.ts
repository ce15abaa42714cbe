import { assign, type Member } from './assign'
import type { AssignerLike, ClusterLike } from './kafkajs-like'
import { decodeMemberMetadata, encodeMemberAssignment, encodeMemberMetadata } from './member-protocol'

/** The name of ours: who offers it runs this library. */
export const STICKY_ASSIGNER = 'RetrylineStickyAssigner'

export type Owned = ReadonlyMap<string, readonly number[]>
/** Partition counts of topics by name; one that does not exist is left out. */
export type LookUp = (topics: readonly string[]) => Promise<ReadonlyMap<string, number>>

/**
 * The two assigners that a consumer offers. The coordinator picks a protocol that every member of the group knows: ours
 * once all members run this library, and until then, in a rolling upgrade from plain kafkajs, its default by name.
 * Under both names the partitions are divided alike; only ours carries what each member held before, and its tag.
 */
export function createAssigners(
  owned: () => Owned,
  lookUp: LookUp,
  tag: string,
): ((config: { cluster: never }) => AssignerLike)[] {
  return [STICKY_ASSIGNER, 'RoundRobinAssigner'].map((name, i) => {
    const sticky = i === 0
    return ({ cluster }): AssignerLike => ({
      name,
      version: 0,
      async assign({ members, topics: own }) {
        const known = members.map(readMember)
        const topics = [...new Set(known.flatMap((member) => [...member.topics]))]
        const partitions = await partitionsOf(cluster, topics, new Set(own), lookUp)
        return [...assign(known, partitions)].map(([memberId, assignment]) => ({
          memberId,
          memberAssignment: encodeMemberAssignment(0, assignment),
        }))
      },
      protocol: ({ topics }) => ({
        name,
        metadata: encodeMemberMetadata(0, topics, sticky ? encodeUserData(owned(), tag) : Buffer.alloc(0)),
      }),
    })
  })
}

/**
 * The leader's own metadata holds only the topics that it subscribes to itself; those of other members are looked up
 * apart, since a topic once added to a kafkajs client stays, and fails every refresh when it is deleted one day.
 * A topic that does not exist is not in the answer: nobody gets it, and the group lives on.
 */
async function partitionsOf(
  cluster: ClusterLike,
  topics: readonly string[],
  own: ReadonlySet<string>,
  lookUp: LookUp,
): Promise<Map<string, number[]>> {
  const foreign = topics.filter((topic) => !own.has(topic))
  const counts = foreign.length > 0 ? await lookUp(foreign) : new Map<string, number>()
  const result = new Map<string, number[]>()
  for (const topic of topics) {
    const count = counts.get(topic)
    const found =
      count === undefined
        ? cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId)
        : Array.from({ length: count }, (_, partition) => partition)
    result.set(
      topic,
      found.sort((a, b) => a - b),
    )
  }
  return result
}

function readMember({ memberId, memberMetadata }: { memberId: string; memberMetadata: Buffer }): Member {
  try {
    const { topics, userData } = decodeMemberMetadata(memberMetadata)
    return { memberId, topics: new Set(topics), owned: decodeOwned(userData) }
  } catch {
    return { memberId, topics: new Set(), owned: new Map() }
  }
}

/** The tags of members, by their metadata; members without are left out. */
export function tagsOf(members: readonly { memberMetadata: Buffer }[]): Set<string> {
  return new Set(members.flatMap(({ memberMetadata }) => tagOf(memberMetadata) ?? []))
}

function tagOf(memberMetadata: Buffer): string | undefined {
  try {
    const entries: unknown = JSON.parse(decodeMemberMetadata(memberMetadata).userData.toString())
    return Array.isArray(entries) ? entries.find((entry) => typeof entry === 'string') : undefined
  } catch {
    return undefined
  }
}

/** What each topic's partitions are, and one text among them: the tag. */
function encodeUserData(owned: Owned, tag: string): Buffer {
  return Buffer.from(JSON.stringify([...owned, tag]))
}

function decodeOwned(userData: Buffer): Owned {
  try {
    const entries: unknown = userData.length === 0 ? [] : JSON.parse(userData.toString())
    if (!Array.isArray(entries)) return new Map()
    return new Map(
      entries.filter((entry): entry is [string, number[]] => Array.isArray(entry) && Array.isArray(entry[1])),
    )
  } catch {
    return new Map()
  }
}
