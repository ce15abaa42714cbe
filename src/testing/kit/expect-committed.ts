import { AssertionError } from 'node:assert'
import { RetrylineError } from '../../errors'
import type { FakeKafka } from '../create-fake-kafka'
import { insideOf } from '../inside'
import { show } from '../show'

export interface Committed {
  groupId: string
  topic: string
  /** Only this partition; all, where it is left out. */
  partition?: number
  /** The offset that must be committed (that of the next record). The end of the log, where it is left out. */
  offset?: bigint | number | string
}

/**
 * A group has committed all that stands on a topic (or one partition of it), or exactly `offset`. Throws an
 * AssertionError that says how far it has come.
 */
export function expectCommitted(kafka: FakeKafka, wanted: Committed): void {
  const { broker } = insideOf(kafka, 'expectCommitted()')
  const { groupId, topic, partition, offset } = checked(wanted)
  const { partitions } = broker.topics.mustFind(topic, partition)
  const committed = kafka.committed(groupId, topic)
  const behind = partitions.flatMap(({ end, logStart }, id) => {
    if (partition !== undefined && partition !== id) return []
    const is = committed.get(id)?.offset
    const must = offset ?? end
    // Nothing to commit where nothing was ever written.
    if (is === must || (offset === undefined && is === undefined && end === logStart)) return []
    const left = is === undefined ? 'has nothing committed' : `is at ${is}`
    return [`${topic}/${id} ${left}, and ${offset === undefined ? `the log ends at ${end}` : `${must} was expected`}`]
  })
  if (behind.length === 0) return
  const what =
    offset === undefined ? `all of ${topic}${partition === undefined ? '' : `/${partition}`}` : `${topic} as told`
  const known = broker.coordinator.names().includes(groupId)
  const groups = known ? '' : `\nThere is no such group; groups: ${broker.coordinator.names().join(', ') || 'none'}`
  throw new AssertionError({
    message: `expected group ${groupId} to have committed ${what}, but${behind.map((line) => `\n  ${line}`).join('')}${groups}`,
    operator: 'fail',
    stackStartFn: expectCommitted,
  })
}

function checked(wanted: unknown): Omit<Committed, 'offset'> & { offset: bigint | undefined } {
  const bad = (field: string, value: unknown, mend: string): RetrylineError =>
    new RetrylineError('RETRYLINE_TESTING', `expectCommitted(): ${field} is ${show(value)}; ${mend}`)
  if (typeof wanted !== 'object' || wanted === null) {
    throw bad('what to look for', wanted, "give { groupId: 'billing', topic: 'orders' }")
  }
  const { groupId, topic, partition, offset, ...others } = wanted as Record<string, unknown>
  for (const [name, value] of Object.entries(others))
    throw bad(name, value, 'there are only groupId, topic, partition, offset')
  if (typeof groupId !== 'string') throw bad('groupId', groupId, 'give the name of a group')
  if (typeof topic !== 'string') throw bad('topic', topic, 'give the name of a topic')
  if (partition !== undefined && !Number.isInteger(partition)) throw bad('partition', partition, 'give a whole number')
  const isOffset = ['bigint', 'number', 'string'].includes(typeof offset) && /^\d{1,19}$/.test(`${offset as bigint}`)
  if (offset !== undefined && !isOffset) throw bad('offset', offset, 'give a bigint, such as 3n')
  if (offset !== undefined && partition === undefined) {
    throw bad('partition', partition, 'an offset is of one partition: say which')
  }
  const place = { groupId, topic, ...(partition === undefined ? {} : { partition: partition as number }) }
  return { ...place, offset: offset === undefined ? undefined : BigInt(offset as bigint) }
}
