/**
 * What is wrong with a topic as it is set up, and the command that mends it. Pure: `verify-topics` looks, this judges.
 */
import type { NewTopic, TopicSettings } from '../ports'
import { formatDuration } from '../topology'
import type { TopicRole } from '../topology'

const DAY = 86_400_000

/**
 * A retry topic must keep its records at least so long past their due time: a consumer that is down for a night must
 * not find them deleted.
 */
const RETRY_SLACK = DAY
/** A retry topic that keeps records for less than this beyond the delay would delete some before they are handled, ms. */
const RETRY_LEAST = 60 * 60 * 1000
/** What we set on a retry topic that we make: room for a weekend, or for an outage as long as the delay itself. */
const RETRY_ROOM = 3 * DAY
/** What we set on a dead letter topic that we make: a month, for people to look. */
const DEAD_LETTER_RETENTION = 30 * DAY

export interface Surroundings {
  /** Of the main topic; undefined where they are not known. */
  readonly mainPartitions: number | undefined
  readonly mainSettings: TopicSettings | undefined
  /** The most bytes that our headers add. */
  readonly headerBudgetBytes: number
  /** 0 to 1: a delay may be longer by this part of it. */
  readonly jitter: number
}

export interface Found {
  /** What would lose or block records. */
  readonly problems: readonly string[]
  /** What is only worth a look. */
  readonly warnings: readonly string[]
  /** Takes what the main topic takes, but not with all our headers: a record close to the limit may be refused. */
  readonly tight: boolean
}

const BROKERS = '--bootstrap-server "$KAFKA_BROKERS"'

/** A topic as we would make it; its replication is the broker's default. */
export function wantedTopic(role: TopicRole, around: Surroundings): NewTopic {
  const { mainPartitions, mainSettings, headerBudgetBytes } = around
  const delay = Math.ceil((role.tier?.delayMs ?? 0) * (1 + around.jitter))
  const retention = role.role === 'dead-letter' ? DEAD_LETTER_RETENTION : Math.max(2 * delay, delay + RETRY_ROOM)
  const largest = mainSettings?.maxMessageBytes
  return {
    topic: role.topic,
    partitions: mainPartitions ?? 1,
    config: {
      'cleanup.policy': 'delete',
      'retention.ms': String(retention),
      ...(largest !== undefined && { 'max.message.bytes': String(largest + headerBudgetBytes) }),
    },
  }
}

export function missingTopic(role: TopicRole, around: Surroundings): string {
  if (role.role === 'main') {
    return line(role, `does not exist; mend the name, or make it: ${createCommand(role.topic, undefined, {})}`)
  }
  if (role.tier?.former) {
    return line(role, `does not exist; it is of a former schedule: take ${role.tier.name} out of formerTiers`)
  }
  const { config } = wantedTopic(role, around)
  return line(role, `does not exist; make it: ${createCommand(role.topic, around.mainPartitions, config)}`)
}

/** A retry topic with fewer partitions is no loss: copies are placed by key, or modulo the partitions that there are. */
export function partitionWarning(role: TopicRole, partitions: number, around: Surroundings): string | undefined {
  const main = around.mainPartitions ?? 0
  if (role.role !== 'retry' || role.tier?.former || partitions >= main) return undefined
  const command = `kafka-topics.sh ${BROKERS} --alter --topic ${role.topic} --partitions ${main}`
  return line(
    role,
    `has ${partitions} partitions, '${role.main}' has ${main}: fewer members share the work; ${command}`,
  )
}

export function judgeSettings(role: TopicRole, settings: TopicSettings, around: Surroundings): Found {
  if (role.role === 'main') return { problems: [], warnings: [], tight: false }
  const problems: string[] = []
  const warnings: string[] = []
  const wanted = wantedTopic(role, around).config
  const { cleanupPolicy, retentionMs = -1, maxMessageBytes } = settings
  const set = (name: string): string => alterCommand(role.topic, name, wanted[name] ?? '')

  if (cleanupPolicy?.includes('compact')) {
    const why = 'records of the same key would replace each other'
    problems.push(line(role, `cleanup.policy is ${cleanupPolicy}: ${why}; ${set('cleanup.policy')}`))
  }
  if (role.tier && retentionMs >= 0) {
    const wait = role.tier.delayMs * (1 + around.jitter)
    if (retentionMs < wait + RETRY_LEAST) {
      const why = `records wait ${role.tier.name} there, and would be deleted about when they are due`
      problems.push(line(role, `retention.ms is ${readable(retentionMs)}: ${why}; ${set('retention.ms')}`))
    } else if (retentionMs < wait + RETRY_SLACK) {
      const why = `records wait ${role.tier.name} there, and a consumer may be down for a day`
      warnings.push(line(role, `retention.ms is ${readable(retentionMs)}: ${why}; ${set('retention.ms')}`))
    }
  }
  if (role.role === 'dead-letter' && retentionMs >= 0 && retentionMs < advisable(around.mainSettings)) {
    const why = `'${role.main}' keeps its records longer`
    warnings.push(line(role, `retention.ms is ${readable(retentionMs)}: ${why}; ${set('retention.ms')}`))
  }
  const largest = around.mainSettings?.maxMessageBytes
  let tight = false
  if (!role.tier?.former && largest !== undefined && maxMessageBytes !== undefined) {
    tight = maxMessageBytes < largest + around.headerBudgetBytes
    if (maxMessageBytes < largest) {
      const why = `'${role.main}' takes ${largest}, and a copy has up to ${around.headerBudgetBytes} bytes of headers more`
      problems.push(line(role, `max.message.bytes is ${maxMessageBytes}: ${why}; ${set('max.message.bytes')}`))
      tight = false
    }
  }
  return { problems, warnings, tight }
}

export function tightTopics(topics: readonly string[], budget: number): string {
  return (
    `${topics.join(', ')}: max.message.bytes is less than ${budget} above the main topic's, so a copy of a record close to ` +
    `that limit may not fit with its headers (it is then dead-lettered as too-large); raise it by ${budget}`
  )
}

/** A main topic that keeps records for ever does not ask the same of its dead letters. */
function advisable(main: TopicSettings | undefined): number {
  const retention = main?.retentionMs
  if (retention === undefined) return 0
  return retention < 0 ? DEAD_LETTER_RETENTION : Math.min(retention, DEAD_LETTER_RETENTION)
}

export function withoutPartitions(role: TopicRole): string {
  return line(role, 'has no partition; look at the cluster')
}

/** Begins with the topic and what it is for. */
export function line(role: TopicRole, problem: string): string {
  const purpose =
    role.role === 'main'
      ? 'main topic'
      : role.tier
        ? `retry topic ${role.tier.name} of '${role.main}'`
        : `dead letter topic of '${role.main}'`
  return `${role.topic} (${purpose}): ${problem}`
}

function readable(ms: number): string {
  return ms > 0 ? `${ms} (${formatDuration(ms)})` : String(ms)
}

function createCommand(
  topic: string,
  partitions: number | undefined,
  config: Readonly<Record<string, string>>,
): string {
  const parts = [`kafka-topics.sh ${BROKERS} --create --topic ${topic}`]
  if (partitions !== undefined) parts.push(`--partitions ${partitions}`)
  for (const [name, value] of Object.entries(config)) parts.push(`--config ${name}=${value}`)
  return parts.join(' ')
}

function alterCommand(topic: string, name: string, value: string): string {
  return `kafka-configs.sh ${BROKERS} --alter --entity-type topics --entity-name ${topic} --add-config ${name}=${value}`
}
