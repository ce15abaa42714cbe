import type { Chance } from '../chance'
import type { Fault, World } from './fault'

const excuses = { copies: true, stall: true }
/** A node that comes back has logs to read, and clients notice by their own time-outs. */
const recoveryMs = 25_000

/** With one node nobody can do anything meanwhile; with three, another takes over what it led. */
export const brokerStop: Fault = {
  name: 'broker-stop',
  about: 'a broker is stopped by SIGTERM, and started again',
  resource: 'node',
  lastsMs: [1_000, 6_000],
  excuses,
  recoveryMs,
  async begin({ broker, nodes, log }, chance) {
    const node = chance.between(1, nodes)
    log(`stop node ${node}`)
    await broker.stopNode(node)
    return () => broker.startNode(node)
  },
}

export const brokerKill: Fault = {
  name: 'broker-kill',
  about: 'a broker is killed (with three nodes: the leader of a partition), and started again',
  resource: 'node',
  lastsMs: [1_000, 6_000],
  excuses,
  recoveryMs,
  async begin(world, chance) {
    const node = world.nodes === 1 ? 1 : await leaderOfSome(world, chance)
    world.log(`kill node ${node}`)
    await world.broker.kill(node)
    return () => world.broker.startNode(node)
  },
}

async function leaderOfSome({ admin, topics, log }: World, chance: Chance): Promise<number> {
  const topic = chance.pick(topics)
  const found = (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0]?.partitions ?? []
  const { partitionId, leader } = chance.pick([...found].sort((a, b) => a.partitionId - b.partitionId))
  log(`the leader of ${topic}/${partitionId} is node ${leader}`)
  return leader
}
