/** Copies that the cluster does not take, and commits and reads that it does not allow. */
import { randomBytes } from 'node:crypto'
import { revoke, type Right } from '../acls'
import { encodeWish } from '../payload'
import { changeSettings } from '../topic-settings'
import type { Fault } from './fault'
import { forAWhile, seen, tells } from './proof'

const UNAUTHORIZED = /ForbiddenError|[Nn]ot authorized/
const LIMIT = 50_000

export const rightRevoked: Fault = {
  name: 'right-revoked',
  about: 'a right is taken away: to write a retry topic or the DLQ, to read the main topic, a retry topic or a group',
  resource: 'topics',
  nodes: [1],
  lastsMs: [3_000, 7_000],
  excuses: { copies: true, stall: true },
  // A consumer that was refused again and again comes back after up to 8 s, and joins.
  recoveryMs: 30_000,
  async begin(world, chance) {
    const [group, topic] = chance.pick([...world.groups])
    const right = chance.pick<Right>([
      { kind: 'topic', name: chance.pick([...world.tiers, world.dlq]), operation: 'write' },
      { kind: 'topic', name: topic, operation: 'read' },
      { kind: 'group', name: group, operation: 'read' },
    ])
    const from = Date.now()
    world.log(`revoked: ${JSON.stringify(right)}`)
    const refused = ['publishFailed', 'crashed', 'commitFailed', 'problem']
    return forAWhile(
      async (undos) => void undos.push(await revoke(world.admin, right)),
      () => seen(world, 'a worker was refused', from, (line) => refused.some((one) => tells(line, one, UNAUTHORIZED))),
    )
  },
}

export const tooLarge: Fault = {
  name: 'too-large',
  about: 'retry topics take less than what comes: it goes to the DLQ, or waits where that takes no more either',
  resource: 'topics',
  lastsMs: [1_000, 4_000],
  // kafkajs rejects a request as a whole: what went out beside a refused record, to other partitions, goes out again.
  excuses: { copies: true, stall: false },
  async begin(world, chance) {
    const from = Date.now()
    const limited = chance.pick([world.tiers, [...world.tiers, world.dlq]])
    // Bytes of chance: what compresses well would fit. The wish is never granted: the DLQ is where such a record belongs.
    const wishes = Array.from({ length: chance.between(3, 10) }, (_, i) => ({
      key: `large-${i}`,
      value: encodeWish({
        id: `large-${from}-${i}`,
        fails: 99,
        fatal: false,
        ms: 1,
        padding: randomBytes(LIMIT).toString('base64'),
      }),
    }))
    return forAWhile(
      async (undos) => {
        for (const topic of limited)
          undos.push(await changeSettings(world.admin, topic, { 'max.message.bytes': String(LIMIT) }))
        await world.produce(wishes)
      },
      () =>
        seen(
          world,
          'a copy was too large',
          from,
          (line) => tells(line, 'deadLettered', /"too-large"/) || tells(line, 'problem', /too large even for/),
        ),
    )
  },
}

/** One node of three is down, and these topics want all three: nothing is stored on them. */
export const notEnoughReplicas: Fault = {
  name: 'not-enough-replicas',
  about: 'a node is down, and retry topics or the DLQ want every replica in sync: NOT_ENOUGH_REPLICAS',
  resource: 'node',
  nodes: [3],
  lastsMs: [4_000, 8_000],
  excuses: { copies: true, stall: true },
  recoveryMs: 25_000,
  async begin(world, chance) {
    const from = Date.now()
    const node = chance.between(1, 3)
    const refused = /fewer in-sync replicas|not enough replicas|NOT_ENOUGH_REPLICAS/i
    return forAWhile(
      async (undos) => {
        for (const topic of [...world.tiers, world.dlq])
          undos.push(await changeSettings(world.admin, topic, { 'min.insync.replicas': '3' }))
        world.log(`node ${node} stops`)
        await world.broker.stopNode(node)
        undos.push(() => world.broker.startNode(node))
      },
      () => seen(world, 'replicas were too few', from, (line) => tells(line, 'publishFailed', refused)),
    )
  },
}
