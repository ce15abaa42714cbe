/** The copies that stand on a fake broker: dead letters and retries, whatever their topics are called. */
import { HEADER, isOwnHeader, readEnvelope, restoreNullHeaders, type Envelope, type PastFailure } from '../../envelope'
import { lastHeader, type Header } from '../../record'
import { formatDuration, parseCanonical } from '../../topology'
import type { FakeKafka, FakeRecord } from '../create-fake-kafka'
import type { Inside } from '../inside'
import { readable, type Readable } from './readable'

/** A failed record's copy: key, value and foreign headers are those of the record. */
interface Copy extends Readable {
  /** The main topic. */
  readonly topic: string
  /** Where the record first stood. */
  readonly original: { readonly partition: number; readonly offset: bigint; readonly timestamp: number }
  /** Where the copy stands. */
  readonly partition: number
  readonly offset: bigint
  /** The group whose handler failed. */
  readonly groupId: string
  /** The name of the last error (`TypeError`), and what it said. */
  readonly errorClass: string
  readonly error: string
  /** Why the classifier judged the last failure so. */
  readonly because: string
  readonly firstFailedAt: Date
  readonly lastFailedAt: Date
  /** The last ten failures, oldest first. */
  readonly history: readonly PastFailure[]
}

export interface DeadLetter extends Copy {
  readonly deadLetterTopic: string
  /** `exhausted`, `non-retryable`, `undecodable` … : what `x-failure-reason` says. */
  readonly reason: string
  /** How many attempts were made. */
  readonly attempts: number
  readonly stack: string | undefined
}

export interface Retry extends Copy {
  readonly retryTopic: string
  /** The canonical delay of its tier (`1m`), by the name of the topic; where names are your own, what it really waits. */
  readonly delay: string
  /** The attempt that is made of it. */
  readonly attempt: number
  readonly dueAt: Date
}

export const isDeadLetter = (record: FakeRecord): boolean =>
  lastHeader(record.headers, HEADER.failureReason) !== undefined &&
  lastHeader(record.headers, HEADER.originalTopic) !== undefined

const isRetry = (record: FakeRecord): boolean =>
  !isDeadLetter(record) && lastHeader(record.headers, HEADER.dueAt) != null

export function deadLettersOf(kafka: FakeKafka, inside: Inside): DeadLetter[] {
  return copiesOf(kafka, inside, isDeadLetter, (deadLetterTopic, envelope, copy) => ({
    ...copy,
    deadLetterTopic,
    reason: envelope.failureReason ?? '',
    attempts: envelope.attempt ?? 0,
    stack: envelope.errorStack,
  }))
}

export function retriesOf(kafka: FakeKafka, inside: Inside): Retry[] {
  return copiesOf(kafka, inside, isRetry, (retryTopic, envelope, copy) => ({
    ...copy,
    retryTopic,
    delay: tierOf(retryTopic) ?? formatDuration((envelope.dueAt ?? 0) - (envelope.lastFailedAt ?? 0)),
    attempt: envelope.attempt ?? 0,
    dueAt: new Date(envelope.dueAt ?? NaN),
  }))
}

function tierOf(topic: string): string | undefined {
  const [, delay] = /\.retry\.(\w+)$/.exec(topic) ?? []
  return delay !== undefined && parseCanonical(delay) !== undefined ? delay : undefined
}

function copiesOf<T>(
  kafka: FakeKafka,
  inside: Inside,
  is: (record: FakeRecord) => boolean,
  make: (topic: string, envelope: Envelope, copy: Copy) => T,
): T[] {
  return inside.broker.topics.names().flatMap((topic) =>
    kafka
      .records(topic)
      .filter(is)
      .map((record) => {
        const envelope = readEnvelope(record.headers)
        return make(topic, envelope, copyOf(record, envelope))
      }),
  )
}

function copyOf(record: FakeRecord, envelope: Envelope): Copy {
  const { partition, offset, key, value } = record
  const headers = foreign(record.headers)
  const { originalPartition = -1, originalOffset = -1n, originalTimestamp = -1 } = envelope
  return {
    ...readable({ key, value, headers }),
    topic: envelope.originalTopic ?? '',
    original: { partition: originalPartition, offset: originalOffset, timestamp: originalTimestamp },
    partition,
    offset,
    groupId: envelope.group ?? '',
    errorClass: envelope.errorClass ?? '',
    error: envelope.error ?? '',
    because: envelope.history.at(-1)?.because ?? '',
    firstFailedAt: new Date(envelope.firstFailedAt ?? NaN),
    lastFailedAt: new Date(envelope.lastFailedAt ?? NaN),
    history: envelope.history,
  }
}

const foreign = (headers: readonly Header[]): Header[] =>
  restoreNullHeaders(headers).filter(([name]) => !isOwnHeader(name))
