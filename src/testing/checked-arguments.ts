/** What a test in JavaScript may give to the fake broker by mistake: refused, with field, value and mend. */
import { RetrylineError } from '../errors'
import { toMs } from './duration'
import type { RequestFilter, RequestKind } from './faults'
import { show } from './show'

const refused = (problem: string): RetrylineError => new RetrylineError('RETRYLINE_TESTING', problem)

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isWhole = (value: unknown, from: number): boolean => Number.isInteger(value) && (value as number) >= from

/** Throws for a name that is not `known`; `what` says of which there are some. */
function checkNames(who: string, given: object, known: readonly string[], what: string): void {
  const stranger = Object.keys(given).find((name) => !known.includes(name))
  if (stranger !== undefined) throw refused(`${who}: there is no ${what} '${stranger}'; there are: ${known.join(', ')}`)
}

const OPTIONS = ['topics', 'startAt', 'stallAfter', 'clientId', 'retry', 'brokers', 'cleanEvery', 'slowPolls']

export function checkOptions(options: unknown): void {
  const who = 'createFakeKafka()'
  if (!isObject(options)) throw refused(`${who}: ${show(options)} is no options; give { topics: { orders: 3 } }`)
  checkNames(who, options, OPTIONS, 'option')
  const { topics, brokers, cleanEvery, slowPolls } = options
  if (topics !== undefined && !isObject(topics)) {
    throw refused(
      `${who}: topics is ${show(topics)}, which is not understood; give { orders: 3 }, the partitions of each topic`,
    )
  }
  for (const [name, spec] of Object.entries(topics ?? {})) {
    checkTopic(`${who}: topics`, name, typeof spec === 'number' ? { partitions: spec } : spec)
  }
  if (brokers !== undefined && !isWhole(brokers, 1)) {
    throw refused(`${who}: brokers: ${show(brokers)} is not a number of nodes; give 1 or more`)
  }
  if (cleanEvery !== undefined && !(toMs(cleanEvery as number) > 0))
    throw refused(`${who}: cleanEvery: give more than 0 ms`)
  if (slowPolls !== undefined && typeof slowPolls !== 'boolean') {
    throw refused(`${who}: slowPolls is ${show(slowPolls)}; give true, or leave it out`)
  }
}

/** What a broker itself refuses (a bad name, 0 partitions) is left to it. */
export function checkTopic(who: string, name: unknown, spec: unknown): void {
  if (typeof name !== 'string') throw refused(`${who}: the name is ${show(name)}; give text`)
  const mend = 'give { partitions, replicationFactor, config }, or a part of it'
  if (!isObject(spec)) throw refused(`${who}: ${name} is ${show(spec)}; ${mend}`)
  checkNames(`${who}: ${name}`, spec, ['partitions', 'replicationFactor', 'config'], 'setting')
  for (const field of ['partitions', 'replicationFactor']) {
    const value = spec[field]
    if (value !== undefined && typeof value !== 'number')
      throw refused(`${who}: ${field} of ${name} is ${show(value)}; give a number`)
  }
  if (spec.config !== undefined && !isObject(spec.config)) {
    throw refused(`${who}: config of ${name} is ${show(spec.config)}; give { 'retention.ms': '60000' }`)
  }
}

export function checkOffset(who: string, offset: unknown): bigint {
  if (
    typeof offset === 'bigint' ||
    Number.isInteger(offset) ||
    (typeof offset === 'string' && /^-?\d+$/.test(offset))
  ) {
    return BigInt(offset as bigint)
  }
  throw refused(`${who}: the offset is ${show(offset)}; give a bigint, such as 3n`)
}

/** As an object, so that the compiler asks for every kind. */
const KINDS: Readonly<Record<RequestKind, true>> = {
  publish: true,
  commit: true,
  fetch: true,
  join: true,
  sync: true,
  heartbeat: true,
  leave: true,
  metadata: true,
  coordinator: true,
  offsets: true,
  positions: true,
  initProducer: true,
  addPartitions: true,
  addOffsets: true,
  txnOffsets: true,
  endTransaction: true,
  markers: true,
  admin: true,
}

const FILTERS: Readonly<Record<keyof RequestFilter, 'string' | 'number'>> = {
  node: 'number',
  topic: 'string',
  partition: 'number',
  group: 'string',
  transactionalId: 'string',
}

/** A fault that no request can ever meet would make its test pass for nothing. */
export function checkRequest(who: string, kind: unknown, where: unknown): void {
  if (typeof kind !== 'string' || !Object.hasOwn(KINDS, kind)) {
    throw refused(`${who}: ${show(kind)} is no kind of request; give one of ${Object.keys(KINDS).join(', ')}`)
  }
  if (where === undefined) return
  if (!isObject(where)) throw refused(`${who}: ${show(where)} says not which requests; give { topic: 'orders' }`)
  checkNames(who, where, Object.keys(FILTERS), 'filter')
  for (const [name, value] of Object.entries(where)) {
    const type = FILTERS[name as keyof RequestFilter]
    if (value !== undefined && typeof value !== type) {
      throw refused(`${who}: ${name} is ${show(value)}; give ${type === 'number' ? 'a number' : 'text'}`)
    }
  }
}
