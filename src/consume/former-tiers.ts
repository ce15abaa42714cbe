/** Tiers of a schedule that was changed: found by name, and read until they are empty. */
import { errorText, type Emitter } from '../observe'
import type { TopicAdmin } from '../ports'
import { buildTopology, parseTierTopic, tierGroupId, type TopologyInput, type Topology } from '../topology'

/**
 * Adds to the topology every tier whose retry topic exists, is not of the schedule, and holds records that this group has
 * not settled. Where the cluster does not let us list topics, those named in `formerTiers` must do.
 */
export async function withFormerTiers(
  topology: Topology,
  input: TopologyInput,
  admin: TopicAdmin,
  emitter: Emitter,
): Promise<Topology> {
  const found: { delayMs: number; topics: string[] }[] = []
  try {
    const known = new Set(topology.allTopics().map(({ topic }) => topic))
    for (const topic of await admin.listTopics()) {
      if (known.has(topic)) continue
      for (const main of topology.topics) {
        const delayMs = parseTierTopic(topic, main, input.naming ?? 'topic', input.groupId)
        if (delayMs === undefined || !(await isWaiting(admin, topic, tierGroupId(input.groupId, delayMs)))) continue
        found.push({ delayMs, topics: [main] })
      }
    }
  } catch (error) {
    emitter.emit('problem', { where: 'looking for retry topics of a former schedule', error: errorText(error) })
  }
  return found.length === 0
    ? topology
    : buildTopology({ ...input, formerTiers: [...(input.formerTiers ?? []), ...found] })
}

async function isWaiting(admin: TopicAdmin, topic: string, groupId: string): Promise<boolean> {
  const [ranges, committed] = [await admin.ranges(topic), await admin.committed(groupId, [topic])]
  const offsets = new Map(committed.map(({ partition, offset }) => [partition, offset]))
  return ranges.some(({ partition, low, high }) => {
    const offset = offsets.get(partition) ?? -1n
    return high > (offset > low ? offset : low)
  })
}
