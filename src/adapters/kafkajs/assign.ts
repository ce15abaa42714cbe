/** Which member of a group gets which partition: pure, so that its promises can be tried on thousands of groups. */

export interface Member {
  readonly memberId: string
  readonly topics: ReadonlySet<string>
  /** What it held in the generation before, by topic. */
  readonly owned: ReadonlyMap<string, readonly number[]>
}

/**
 * Sticky and even, topic by topic:
 * - a partition goes only to a member that subscribes to its topic (kafkajs's round robin ignores that, so that a rolling
 *   change of topics strands some);
 * - a member keeps what it held, up to its share, so that a rebalance stops as little as it can;
 * - of a topic no two subscribers' counts differ by more than one, and who gets the extra one is chosen by the load over
 *   all topics, so that a group with many small topics does not load its first member with all of them.
 * Of two members that claim the same partition neither is believed.
 */
export function assign(
  members: readonly Member[],
  partitions: ReadonlyMap<string, readonly number[]>,
): Map<string, Map<string, number[]>> {
  const sorted = [...members].sort((a, b) => (a.memberId < b.memberId ? -1 : 1))
  const result = new Map(sorted.map((member) => [member.memberId, new Map<string, number[]>()]))
  const load = new Map(sorted.map((member) => [member.memberId, 0]))

  for (const topic of [...partitions.keys()].sort()) {
    const subscribers = sorted.filter((member) => member.topics.has(topic))
    if (subscribers.length === 0) continue
    const all = partitions.get(topic) ?? []
    const held = heldBefore(topic, all, subscribers)
    const share = Math.floor(all.length / subscribers.length)
    let extras = all.length % subscribers.length

    // Whoever held more than the share keeps one extra first; the rest of the extras go to whoever carries least.
    const given = new Map<string, number[]>()
    const byLoad = (a: Member, b: Member): number => load.get(a.memberId)! - load.get(b.memberId)!
    const quota = new Map<string, number>()
    const wantsExtra = subscribers.filter((member) => held.get(member.memberId)!.length > share).sort(byLoad)
    const others = subscribers.filter((member) => held.get(member.memberId)!.length <= share).sort(byLoad)
    for (const member of [...wantsExtra, ...others]) quota.set(member.memberId, share + (extras-- > 0 ? 1 : 0))

    const free = new Set(all)
    for (const { memberId } of subscribers) {
      const kept = held.get(memberId)!.slice(0, quota.get(memberId))
      for (const partition of kept) free.delete(partition)
      given.set(memberId, kept)
    }
    for (const { memberId } of subscribers) {
      const mine = given.get(memberId)!
      for (const partition of free) {
        if (mine.length >= quota.get(memberId)!) break
        mine.push(partition)
        free.delete(partition)
      }
      if (mine.length === 0) continue
      result.get(memberId)!.set(
        topic,
        mine.sort((a, b) => a - b),
      )
      load.set(memberId, load.get(memberId)! + mine.length)
    }
  }
  return result
}

function heldBefore(topic: string, all: readonly number[], subscribers: readonly Member[]): Map<string, number[]> {
  const claims = new Map<number, number>()
  for (const member of subscribers) {
    for (const partition of new Set(member.owned.get(topic))) claims.set(partition, (claims.get(partition) ?? 0) + 1)
  }
  return new Map(
    subscribers.map((member) => {
      const mine = new Set(member.owned.get(topic))
      return [member.memberId, all.filter((partition) => mine.has(partition) && claims.get(partition) === 1)]
    }),
  )
}
