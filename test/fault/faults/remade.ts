/**
 * A topic deleted and made anew. What stands on it is gone with it, by the operator's hand, so the fault sees to it that nothing
 * the library still answers for stands there: first nobody may write it any more, then what stands there is handled and
 * committed (a retry topic) or read for the checker (the DLQ), and only then it is deleted. Nothing else excuses a loss.
 */
import { revoke } from '../acls'
import { setSettings, settingsOf, type Settings } from '../topic-settings'
import { until } from '../until'
import { NothingToDo, type Fault, type World } from './fault'
import { seen, tells } from './proof'

/** So long the ends must stay as they are, ms: the rule that nobody writes has reached every node by then. */
const QUIET = 1_500
const DRAIN = 45_000

export const topicRemade: Fault = {
  name: 'topic-remade',
  about: 'a retry topic or the DLQ, drained, is deleted under load and made anew, perhaps with another partition count',
  resource: 'topics',
  // The right to write is taken away first.
  nodes: [1],
  lastsMs: [1_000, 5_000],
  excuses: { copies: true, stall: true },
  recoveryMs: 30_000,
  async begin(world, chance) {
    const { admin, log } = world
    const topic = chance.pick([...world.tiers, world.dlq])
    const partitions = chance.pick([6, 6, 3, 8])
    const from = Date.now()
    const giveBack = await revoke(admin, { kind: 'topic', name: topic, operation: 'write' })
    const settings = await emptied(world, topic).catch(async (error: unknown) => {
      await giveBack()
      throw error
    })
    return async () => {
      // The broker may take a moment to let go of the name.
      const made = async (): Promise<boolean> => {
        try {
          const replicationFactor = world.nodes
          return await admin.createTopics({
            topics: [{ topic, numPartitions: partitions, replicationFactor }],
            waitForLeaders: true,
          })
        } catch {
          return (await admin.listTopics()).includes(topic)
        }
      }
      await until(`${topic} is made anew`, made, 60_000)
      await setSettings(admin, topic, settings)
      log(`${topic} is there again, with ${partitions} partitions`)
      world.remade(topic)
      await giveBack()
      await seen(world, `a publish to ${topic} failed meanwhile`, from, (line) =>
        tells(line, 'publishFailed', new RegExp(`"${topic.replaceAll('.', '\\.')}"`)),
      )
    }
  },
}

/** Deletes the topic once nothing of ours stands there; resolves with its settings. */
async function emptied(world: World, topic: string): Promise<Settings> {
  await until(`${topic} is drained`, drained(world, topic), DRAIN).catch((error: Error) => {
    throw new NothingToDo(error.message)
  })
  const settings = await settingsOf(world.admin, topic)
  await world.beforeRemake(topic)
  world.log(`${topic} is deleted`)
  await world.admin.deleteTopics({ topics: [topic] })
  return settings
}

/** Nothing is written any more, and all that was is committed where somebody consumes it. */
function drained({ admin, groups }: World, topic: string): () => Promise<boolean> {
  const group = [...groups].find(([, consumed]) => consumed === topic)?.[0]
  let last = ''
  let since = Date.now()
  return async () => {
    const ends = await admin.fetchTopicOffsets(topic)
    const [found] = group === undefined ? [] : await admin.fetchOffsets({ groupId: group, topics: [topic] })
    const committed = new Map(found?.partitions.map(({ partition, offset }) => [partition, offset]))
    const behind = ends.filter(
      ({ partition, high }) => group !== undefined && high !== '0' && committed.get(partition) !== high,
    )
    const now = JSON.stringify(ends.map(({ partition, high }) => [partition, high]).sort())
    if (behind.length > 0 || now !== last) since = Date.now()
    last = now
    return Date.now() - since >= QUIET
  }
}
