/**
 * What the client's user must be allowed, and nothing more. The page docs/operations.md shows this list, and a test runs a
 * consumer with exactly it, then with each line taken away, on a broker that denies everything else.
 *
 * Read and Write each imply Describe; DescribeConfigs is implied by neither.
 */
import type { AclOperation, AclResource } from '../ports'
import type { Topology } from './topology'

export interface Access {
  readonly operation: AclOperation
  readonly resourceType: AclResource
  readonly name: string
  readonly pattern: 'literal' | 'prefixed'
  readonly why: string
  /** When it is needed: undefined for always. */
  readonly when?: 'verify' | 'create' | 'formerGroupIds'
}

type Where = Pick<Access, 'resourceType' | 'name' | 'pattern'>

/**
 * For a consumer whose retry topics have the names that they get by default, or `by-topic-and-group`. Names with a common
 * beginning are one line with a prefix: a change of the schedule, and a wait of a former one, need no new line.
 */
export function accessOf(topology: Topology): readonly Access[] {
  const list: Access[] = []
  const add = (where: Where, operation: AclOperation, why: string, when?: Access['when']): void => {
    list.push({ operation, ...where, why, ...(when !== undefined && { when }) })
  }
  const mains = topology.topics.map((name) => topic(name))
  const retries = unique(
    [...topology.tiers].flatMap(({ name, topics }) => [...topics.values()].map((t) => cut(t, name))),
  )
  const dead = topology.topics.map((main) => topic(topology.deadLetterTopic(main)))

  for (const main of mains) add(main, 'Read', 'its records are fetched and their offsets committed')
  for (const retry of retries) {
    add(retry, 'Read', 'retries are fetched and their offsets committed')
    add(retry, 'Write', 'copies of failed records are put there')
  }
  for (const one of dead) add(one, 'Write', 'dead letters are put there')
  add(group(topology.groupId), 'Read', 'the group is joined, its offsets read and committed')
  if (topology.tiers.length > 0) add(group(`${topology.groupId}.retry.`, 'prefixed'), 'Read', 'the same for each wait')
  for (const one of [...mains, ...retries, ...dead]) {
    add(one, 'DescribeConfigs', 'its settings are checked at the start', 'verify')
  }
  for (const one of [...retries, ...dead]) add(one, 'Create', 'it is made where it is missing', 'create')
  for (const former of topology.formerGroupIds) {
    add(
      group(`${former}.retry.`, 'prefixed'),
      'Describe',
      'how far the former group has come is read',
      'formerGroupIds',
    )
  }
  return list
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
