import { LIMIT } from '../envelope'
import { RetrylineError } from '../errors'
import { formatDuration, parseDuration, shown } from './duration'
import { jitterProblems } from './schedule'
import {
  deadLetterTopicName,
  type NamedTopic,
  type Naming,
  retryTopicName,
  tierGroupId,
  topicSetProblems,
} from './topic-names'
import type { Tier, TopicRole, Topology } from './topology'

/** A tier of a former schedule that may still hold records. */
export interface FormerTier {
  readonly delayMs: number
  /** The main topics that had it; all where absent. */
  readonly topics?: readonly string[] | undefined
}

export interface TopologyInput {
  /** The main topics; at least one. */
  readonly topics: readonly string[]
  readonly groupId: string
  /** ms, in order of use; empty means that a failed record goes straight to the dead letter topic. */
  readonly delays: readonly number[]
  /** 0 to 1, default 0. */
  readonly jitter?: number | undefined
  /** Default 'topic'. */
  readonly naming?: Naming | undefined
  readonly deadlineMs?: number | undefined
  /** A delay that is in `delays` too is not former, and is ignored here. */
  readonly formerTiers?: readonly FormerTier[] | undefined
  readonly formerGroupIds?: readonly string[] | undefined
}

/** Everything that is wrong with the input, each with field, value and mend; empty if nothing is. Never throws. */
export function topologyProblems(input: TopologyInput): string[] {
  const problems = [
    ...groupProblems(input.groupId, 'groupId'),
    ...(input.formerGroupIds ?? []).flatMap((group, i) => groupProblems(group, `formerGroupIds[${i}]`)),
    ...jitterProblems(input.jitter ?? 0, 'jitter'),
  ]
  const delays = [...input.delays, ...(input.formerTiers ?? []).map((tier) => tier.delayMs)]
  if (input.deadlineMs !== undefined) delays.push(input.deadlineMs)
  for (const delay of delays) {
    const result = parseDuration(delay, 'delay')
    if (!result.ok) problems.push(result.problem)
  }
  if (input.topics.length === 0) problems.push('topic: there is none; name at least one topic to consume')
  if (problems.length > 0) return problems
  try {
    return topicSetProblems(namedTopics(input))
  } catch (error) {
    return [`naming: your function threw (${String(error)}); it must return a topic name for any topic and delay`]
  }
}

function groupProblems(group: unknown, field: string): string[] {
  if (typeof group !== 'string' || group === '') return [`${field}: ${shown(group)} is not a name; give one`]
  const bytes = Buffer.byteLength(group)
  return bytes <= LIMIT.group ? [] : [`${field}: ${bytes} bytes are too long; give at most ${LIMIT.group}`]
}

function namedTopics(input: TopologyInput): NamedTopic[] {
  const { topics, groupId, naming = 'topic' } = input
  const named: NamedTopic[] = topics.map((name) => ({ name, purpose: 'main topic' }))
  for (const tier of tierPlans(input)) {
    for (const main of tier.topics) {
      const name = retryTopicName(naming, main, tier.delayMs, groupId)
      named.push({ name, purpose: `retry topic ${formatDuration(tier.delayMs)} of '${main}'` })
    }
  }
  for (const main of topics) {
    named.push({ name: deadLetterTopicName(naming, main, groupId), purpose: `dead letter topic of '${main}'` })
  }
  return named
}

interface TierPlan {
  readonly delayMs: number
  readonly topics: readonly string[]
  readonly former: boolean
}

/** The distinct delays in order of first use, then the former ones. */
function tierPlans({ topics, delays, formerTiers = [] }: TopologyInput): TierPlan[] {
  const current = [...new Set(delays)].map((delayMs) => ({ delayMs, topics, former: false }))
  const former = new Map<number, Set<string>>()
  for (const tier of formerTiers) {
    if (delays.includes(tier.delayMs)) continue
    const mains = former.get(tier.delayMs) ?? new Set()
    for (const main of tier.topics ?? topics) if (topics.includes(main)) mains.add(main)
    former.set(tier.delayMs, mains)
  }
  const old = [...former].filter(([, mains]) => mains.size > 0).sort(([a], [b]) => a - b)
  return [...current, ...old.map(([delayMs, mains]) => ({ delayMs, topics: [...mains], former: true }))]
}

/** Builds the chain. Throws RETRYLINE_CONFIG with every problem where topologyProblems finds any. */
export function buildTopology(input: TopologyInput): Topology {
  const problems = topologyProblems(input)
  if (problems.length > 0) {
    throw new RetrylineError('RETRYLINE_CONFIG', `The topology has problems:\n${problems.join('\n')}`, { problems })
  }
  const { groupId, delays, naming = 'topic' } = input
  const topics = Object.freeze([...input.topics])
  const maxAttempts = delays.length + 1
  const tiers = tierPlans(input).map(({ delayMs, topics: mains, former }): Tier =>
    Object.freeze({
      name: formatDuration(delayMs),
      delayMs,
      groupId: tierGroupId(groupId, delayMs),
      firstAttempt: former ? 2 : delays.indexOf(delayMs) + 2,
      lastAttempt: former ? maxAttempts : delays.lastIndexOf(delayMs) + 2,
      former,
      topics: new Map(mains.map((main) => [main, retryTopicName(naming, main, delayMs, groupId)])),
    }),
  )
  const byDelay = new Map(tiers.map((tier) => [tier.delayMs, tier]))
  const ofAttempt = delays.map((delay) => byDelay.get(delay) as Tier)
  const deadLetter = new Map(topics.map((main) => [main, deadLetterTopicName(naming, main, groupId)]))
  const roles = listRoles(topics, tiers, deadLetter)
  const byTopic = new Map(roles.map((role) => [role.topic, role]))

  return Object.freeze({
    groupId,
    formerGroupIds: new Set(input.formerGroupIds),
    topics,
    maxAttempts,
    jitter: input.jitter ?? 0,
    deadlineMs: input.deadlineMs,
    tiers: Object.freeze(tiers),
    tierOfAttempt: (attempt: number) => ofAttempt[attempt - 2],
    tierForDelay(afterMs: number, attempt: number) {
      const own = ofAttempt[attempt - 2]
      if (own === undefined || !(afterMs > own.delayMs)) return own
      const byLength = ofAttempt.slice(attempt - 2).sort((a, b) => a.delayMs - b.delayMs)
      return byLength.find((tier) => tier.delayMs >= afterMs) ?? byLength.at(-1)
    },
    retryTopic(main: string, tier: Tier) {
      return known(tier.topics.get(main), `'${main}' has no tier ${tier.name}`)
    },
    deadLetterTopic(main: string) {
      return known(deadLetter.get(main), `'${main}' is not a topic of this consumer`)
    },
    origin(topic: string) {
      const role = byTopic.get(topic)
      return role?.tier && { main: role.main, tier: role.tier }
    },
    roleOf: (topic: string) => byTopic.get(topic),
    allTopics: () => roles,
  })
}

function listRoles(
  topics: readonly string[],
  tiers: readonly Tier[],
  deadLetter: ReadonlyMap<string, string>,
): readonly TopicRole[] {
  const roles: TopicRole[] = topics.map((topic) => ({ topic, role: 'main', main: topic, tier: undefined }))
  for (const tier of tiers) {
    for (const [main, topic] of tier.topics) roles.push({ topic, role: 'retry', main, tier })
  }
  for (const [main, topic] of deadLetter) roles.push({ topic, role: 'dead-letter', main, tier: undefined })
  return Object.freeze(roles.map((role) => Object.freeze(role)))
}

function known<T>(value: T | undefined, message: string): T {
  if (value === undefined) throw new RetrylineError('RETRYLINE_STATE', message)
  return value
}
