import { formatDuration, parseCanonical, shown } from './duration'

/**
 * How retry and dead letter topics are named, for main topic `T` and group `G`:
 * - `topic` (default): `T.retry.1m`, `T.dlq`;
 * - `group`: `T.G.retry.1m`, `T.G.dlq`, so that no two groups share a topic;
 * - functions of your own. `delay` is canonical (`1m`, never `60s`).
 */
export type Naming = 'topic' | 'group' | CustomNaming

export interface CustomNaming {
  readonly retry: (topic: string, delay: string, groupId: string) => string
  readonly deadLetter: (topic: string, groupId: string) => string
}

// Kafka's own rule (org.apache.kafka.common.internals.Topic).
const LEGAL = /^[a-zA-Z0-9._-]{1,249}$/
const INTERNAL: ReadonlySet<string> = new Set(['__consumer_offsets', '__transaction_state', '__cluster_metadata'])

/** What is wrong with a topic name, as the end of a sentence that begins with the name; `undefined` if nothing. */
export function topicProblem(name: unknown): string | undefined {
  if (typeof name !== 'string') return 'is not text; give the name of a topic'
  if (name.length > 249) return `is ${name.length} characters long; Kafka takes at most 249`
  if (!LEGAL.test(name) || name === '.' || name === '..') {
    return "is not a legal topic name; Kafka takes letters, digits, '.', '_' and '-', and neither '.' nor '..' alone"
  }
  return INTERNAL.has(name) ? "is one of Kafka's own topics; name another" : undefined
}

export function retryTopicName(naming: Naming, topic: string, delayMs: number, groupId: string): string {
  const delay = formatDuration(delayMs)
  if (typeof naming === 'object') return naming.retry(topic, delay, groupId)
  return `${retryPrefix(naming, topic, groupId)}${delay}`
}

export function deadLetterTopicName(naming: Naming, topic: string, groupId: string): string {
  if (typeof naming === 'object') return naming.deadLetter(topic, groupId)
  return naming === 'group' ? `${topic}.${groupId}.dlq` : `${topic}.dlq`
}

/** `G` reads the main topics, `G.retry.1m` a tier: one group for each distinct delay. */
export function tierGroupId(groupId: string, delayMs: number): string {
  return `${groupId}.retry.${formatDuration(delayMs)}`
}

/**
 * The delay of the tier that a topic of this name would be, for finding tiers of a former schedule; `undefined` if it is
 * not one of this main topic's, or where names are made by a function and cannot be taken apart.
 */
export function parseTierTopic(name: string, topic: string, naming: Naming, groupId: string): number | undefined {
  if (typeof naming === 'object') return undefined
  const prefix = retryPrefix(naming, topic, groupId)
  return name.startsWith(prefix) ? parseCanonical(name.slice(prefix.length)) : undefined
}

function retryPrefix(naming: 'topic' | 'group', topic: string, groupId: string): string {
  return naming === 'group' ? `${topic}.${groupId}.retry.` : `${topic}.retry.`
}

/** A name and what it is for, in words (`the retry topic (1m) of orders`). */
export interface NamedTopic {
  readonly name: string
  readonly purpose: string
}

/** Problems of a set of topics: each legal, no two the same, and none that Kafka would take for another. */
export function topicSetProblems(topics: readonly NamedTopic[]): string[] {
  const problems: string[] = []
  const seen = new Map<string, NamedTopic>()
  for (const topic of topics) {
    const problem = topicProblem(topic.name)
    if (problem !== undefined) {
      problems.push(`${topic.purpose}: ${shown(topic.name)} ${problem}`)
      continue
    }
    // Kafka names metrics with '_' for '.', and refuses to create a topic that then looks like another.
    const metric = topic.name.replaceAll('.', '_')
    const other = seen.get(metric)
    if (other === undefined) {
      seen.set(metric, topic)
    } else if (other.name === topic.name) {
      problems.push(
        `${topic.purpose}: '${topic.name}' is the name of the ${other.purpose} too; each needs a topic of its own`,
      )
    } else {
      const kafka = `Kafka does not tell '.' from '_' and refuses one of them`
      problems.push(`${topic.purpose}: '${topic.name}' collides with '${other.name}' (${other.purpose}); ${kafka}`)
    }
  }
  return problems
}
