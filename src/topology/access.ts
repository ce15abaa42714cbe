/**
 * What the client's user must be allowed, and nothing more, by what it is for. The page docs/operations.md shows these
 * lists, and a test does the work with exactly them, then with each line taken away, on a broker that denies everything
 * else.
 *
 * Read and Write each imply Describe; DescribeConfigs is implied by neither.
 */
import type { AclOperation, AclResource } from '../ports'
import type { Topology } from './topology'

/**
 * - consumer: what retryline itself does;
 * - replayer: a program that reads dead letters and puts them back, onto a retry topic or the main topic;
 * - monitor: a program that looks at sizes, ages and lags, and may show dead letters.
 */
export type Role = 'consumer' | 'replayer' | 'monitor'

/** `toRetry`, `toMain`: where a replayer writes. `records`: of a monitor that shows dead letters. */
export type When = 'verify' | 'create' | 'formerGroupIds' | 'exactly-once' | 'toRetry' | 'toMain' | 'records'

export interface Access {
  readonly operation: AclOperation
  readonly resourceType: AclResource
  readonly name: string
  readonly pattern: 'literal' | 'prefixed'
  readonly why: string
  /** When it is needed: undefined for always. */
  readonly when?: When
}

type Where = Pick<Access, 'resourceType' | 'name' | 'pattern'>

type Add = (where: Where, operation: AclOperation, why: string, when?: When) => void

/** The topics as permissions name them. */
interface Places {
  readonly mains: readonly Where[]
  readonly retries: readonly Where[]
  readonly dead: readonly Where[]
}

/**
 * For a group whose retry topics have the names that they get by default, or `by-topic-and-group`. Names with a common
 * beginning are one line with a prefix: a change of the schedule, and a wait of a former one, need no new line.
 */
export function accessOf(topology: Topology, role: Role): readonly Access[] {
  const list: Access[] = []
  const places = {
    mains: topology.topics.map((name) => topic(name)),
    retries: unique([...topology.tiers].flatMap(({ name, topics }) => [...topics.values()].map((t) => cut(t, name)))),
    dead: topology.topics.map((main) => topic(topology.deadLetterTopic(main))),
  }
  LISTS[role](topology, places, (where, operation, why, when) => {
    list.push({ operation, ...where, why, ...(when !== undefined && { when }) })
  })
  return list
}

const LISTS: Readonly<Record<Role, (topology: Topology, places: Places, add: Add) => void>> = {
  consumer(topology, { mains, retries, dead }, add) {
    for (const main of mains) add(main, 'Read', 'its records are fetched and their offsets committed')
    for (const retry of retries) {
      add(retry, 'Read', 'retries are fetched and their offsets committed')
      add(retry, 'Write', 'copies of failed records are put there')
    }
    for (const one of dead) add(one, 'Write', 'dead letters are put there')
    add(group(topology.groupId), 'Read', 'the group is joined, its offsets read and committed')
    for (const tiers of tierGroups(topology)) add(tiers, 'Read', 'the same for each wait')
    for (const one of [...mains, ...retries, ...dead]) {
      add(one, 'DescribeConfigs', 'its settings are checked at the start', 'verify')
    }
    for (const one of [...retries, ...dead]) add(one, 'Create', 'it is made where it is missing', 'create')
    for (const former of topology.formerGroupIds) {
      const tiers = group(`${former}.retry.`, 'prefixed')
      add(tiers, 'Describe', 'how far the former group has come is read', 'formerGroupIds')
    }
    // An id is `<group>/<topic>/<partition>`.
    const ids = [`${topology.groupId}/`, ...tierGroups(topology).map(({ name }) => name)]
    for (const id of ids) add(transactionalId(id), 'Write', 'copies and offsets go in transactions', 'exactly-once')
  },

  replayer({ groupId }, { mains, retries, dead }, add) {
    for (const one of dead) add(one, 'Read', 'dead letters and their offsets are read')
    add(group(`${groupId}.replay`), 'Read', 'kafkajs reads nothing without a group; none of its offsets is committed')
    for (const retry of retries) add(retry, 'Write', 'dead letters are put back there', 'toRetry')
    for (const main of mains) add(main, 'Write', 'dead letters are put back there', 'toMain')
  },

  monitor(topology, { mains, retries, dead }, add) {
    for (const main of mains) add(main, 'Describe', 'how far the group is behind')
    for (const one of [...retries, ...dead]) add(one, 'Describe', 'how many records there are, and how old')
    add(group(topology.groupId), 'Describe', 'how far it has come')
    for (const tiers of tierGroups(topology)) add(tiers, 'Describe', 'the same for each wait')
    for (const one of [...retries, ...dead]) add(one, 'DescribeConfigs', 'for how long records are kept')
    for (const one of dead) add(one, 'Read', 'dead letters are read', 'records')
    const why = 'kafkajs reads nothing without a group; none of its offsets is committed'
    add(group(`${topology.groupId}.monitor`), 'Read', why, 'records')
  },
}

/** The groups of the retry topics, where there are any. */
function tierGroups({ groupId, tiers }: Topology): readonly Where[] {
  return tiers.length > 0 ? [group(`${groupId}.retry.`, 'prefixed')] : []
}

const topic = (name: string, pattern: Access['pattern'] = 'literal'): Where => ({
  resourceType: 'topic',
  name,
  pattern,
})
const group = (name: string, pattern: Access['pattern'] = 'literal'): Where => ({
  resourceType: 'group',
  name,
  pattern,
})

const transactionalId = (name: string): Where => ({ resourceType: 'transactional-id', name, pattern: 'prefixed' })

/** `orders.retry.1m` of the wait `1m`: everything that begins with `orders.retry.`. A name of the user's own is itself. */
function cut(name: string, delay: string): Where {
  return name.endsWith(`.${delay}`) ? topic(name.slice(0, -delay.length), 'prefixed') : topic(name)
}

function unique(all: readonly Where[]): Where[] {
  return [...new Map(all.map((one) => [`${one.pattern} ${one.name}`, one])).values()]
}

/** What a topic must be allowed by what it is for, for the command that mends a refusal in one go. */
export function operationsOn(role: 'main' | 'retry' | 'dead-letter', checked: boolean): readonly AclOperation[] {
  const work: readonly AclOperation[] =
    role === 'main' ? ['Read'] : role === 'retry' ? ['Read', 'Write'] : (['Write'] as const)
  return checked ? [...work, 'DescribeConfigs'] : work
}
