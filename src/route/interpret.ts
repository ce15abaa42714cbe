/**
 * Reads a record into what to do with it. Headers are untrusted input: whatever they say, the attempt stays within the
 * schedule, the wait within the tier, and the topic within the set that was configured.
 */
import { type Envelope, HEADER, type Origin, type Replay } from '../envelope'
import { readEnvelope, readMainEnvelope, restoreNullHeaders } from '../envelope'
import { RetrylineError } from '../errors'
import type { Rec } from '../record'
import type { Tier, Topology } from '../topology'
import { dueTime } from './due'
import type { Handled, Opened, Skipped } from './opened'

/**
 * Opens a record of a main topic. Our headers count only where a replay set them: then it may be another group's, and
 * ids keep the place where it first stood. The attempt is always 1.
 */
export function openMain(rec: Rec, topology: Topology): Handled | Skipped {
  const envelope = readMainEnvelope(rec.headers)
  const group = envelope?.replayForGroup
  if (group !== undefined && !isOurs(group, topology)) return { kind: 'skip', group }
  const problems = [...(envelope?.problems ?? [])]
  return {
    kind: 'handle',
    main: rec.topic,
    tier: undefined,
    attempt: 1,
    dueAt: undefined,
    original: envelope === undefined ? place(rec, rec.topic) : replayedOrigin(rec, envelope, problems),
    firstFailedAt: undefined,
    history: envelope?.history ?? [],
    replay: envelope && replayOf(envelope),
    group: undefined,
    headers: envelope === undefined ? rec.headers : restoreNullHeaders(rec.headers),
    problems,
  }
}

function replayedOrigin(rec: Rec, envelope: Envelope, problems: string[]): Origin {
  const { originalTopic, originalPartition, originalOffset, originalTimestamp } = envelope
  if (
    originalTopic === rec.topic &&
    originalPartition !== undefined &&
    originalOffset !== undefined &&
    originalTimestamp !== undefined
  ) {
    return { topic: rec.topic, partition: originalPartition, offset: originalOffset, timestamp: originalTimestamp }
  }
  problems.push('the replay does not say where on this topic the record first stood; its own place counts')
  return place(rec, rec.topic)
}

/**
 * Opens a record of a retry topic, read at `receivedAt` (ms since the epoch). A record of another group is skipped,
 * unless it is one of `formerGroupIds`; one without a readable group is handled, since skipping could lose it.
 *
 * - attempt: missing or unreadable, it is the first that this tier has; out of bounds, the nearest from 2 to
 *   `maxAttempts`. Not from `tier.firstAttempt`: a `Retry-After` puts an early attempt on a long tier.
 * - due time: see dueTime.
 * - original place: where it is missing, the copy's own; where it is unreadable or another topic than this retry topic
 *   belongs to, the record is rejected as `bad-envelope`.
 */
export function openRetry(rec: Rec, topology: Topology, receivedAt: number): Opened {
  const home = topology.origin(rec.topic)
  if (home === undefined) {
    throw new RetrylineError('RETRYLINE_STATE', `'${rec.topic}' is not a retry topic of this consumer`)
  }
  const { main, tier } = home
  const envelope = readEnvelope(rec.headers)
  const group = envelope.group ?? (envelope.replayed ? envelope.replayForGroup : undefined)
  if (group !== undefined && !isOurs(group, topology)) return { kind: 'skip', group }

  const problems = [...envelope.problems]
  const attempt = boundedAttempt(envelope, tier, topology.maxAttempts, problems)
  const read = {
    main,
    tier,
    attempt,
    dueAt: dueTime(envelope.dueAt, rec.timestamp, tier.delayMs, topology.jitter, receivedAt, problems),
    original: originOf(rec, envelope, main),
    // A time to come would put off the deadline for ever.
    firstFailedAt: earlier(envelope.firstFailedAt, receivedAt),
    history: envelope.history,
    replay: replayOf(envelope),
    group: envelope.group,
    headers: restoreNullHeaders(rec.headers),
    problems,
  }
  if (isOriginSound(envelope, main, problems)) return { kind: 'handle', ...read }
  const made = Math.max(1, attempt - 1)
  return { kind: 'reject', reason: 'bad-envelope', ...read, attempt: made, original: place(rec, main) }
}

function earlier(time: number | undefined, limit: number): number | undefined {
  return time === undefined ? undefined : Math.min(time, limit)
}

function boundedAttempt(envelope: Envelope, tier: Tier, maxAttempts: number, problems: string[]): number {
  const said = envelope.attempt
  const attempt = Math.min(Math.max(2, said ?? tier.firstAttempt), maxAttempts)
  if (said === undefined) problems.push(`no readable ${HEADER.attempt}; it is taken as ${attempt}`)
  else if (said !== attempt) problems.push(`${HEADER.attempt} is ${said}, out of bounds; it is taken as ${attempt}`)
  return attempt
}

function isOriginSound(envelope: Envelope, main: string, problems: string[]): boolean {
  const { originalTopic, unreadable } = envelope
  if (originalTopic !== undefined && originalTopic !== main) {
    problems.push(`${HEADER.originalTopic} is '${originalTopic}', but this retry topic belongs to '${main}'`)
    return false
  }
  return !ORIGIN_HEADERS.some((header) => unreadable.has(header))
}

const ORIGIN_HEADERS = [
  HEADER.originalTopic,
  HEADER.originalPartition,
  HEADER.originalOffset,
  HEADER.originalTimestamp,
] as const

function originOf(rec: Rec, envelope: Envelope, main: string): Origin {
  return {
    topic: main,
    partition: envelope.originalPartition ?? rec.partition,
    offset: envelope.originalOffset ?? rec.offset,
    timestamp: envelope.originalTimestamp ?? rec.timestamp,
  }
}

function place(rec: Rec, topic: string): Origin {
  return { topic, partition: rec.partition, offset: rec.offset, timestamp: rec.timestamp }
}

function replayOf(envelope: Envelope): Replay | undefined {
  if (!envelope.replayed) return undefined
  return { count: Math.max(1, envelope.replayCount ?? 1), forGroup: envelope.replayForGroup }
}

function isOurs(group: string, topology: Topology): boolean {
  return group === topology.groupId || topology.formerGroupIds.has(group)
}
