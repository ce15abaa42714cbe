/**
 * A record of a dead letter topic, as what it was before it died: where it stood, its own bytes, and the story of its
 * failure, whoever wrote it there.
 */
import {
  HEADER,
  isOwnHeader,
  readEnvelope,
  restoreNullHeaders,
  type FailureReason,
  type PastFailure,
} from '../envelope'
import { lastHeader, type Rec } from '../record'
import { readForeign, type ForeignFormat } from './foreign'
import type { Death, Original } from './original'

/** Who wrote a dead letter; `unknown` where nothing tells. */
export type DeadLetterFormat = 'retryline' | ForeignFormat | 'unknown'

export interface DeadLetter extends Death {
  /** `topic:partition:offset` of where it stands: the name by which it is found again. */
  readonly id: string
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  /** When it came there, ms since the epoch; -1 where the record has no time. */
  readonly timestamp: number
  readonly format: DeadLetterFormat
  readonly original: Original
  readonly reason: FailureReason | undefined
  /** Only of ours; ms since the epoch. */
  readonly firstFailedAt: number | undefined
  readonly lastFailedAt: number | undefined
  readonly release: string | undefined
  readonly replayCount: number | undefined
  /** Oldest first; empty where there is none. */
  readonly history: readonly PastFailure[]
}

/** Never throws, whatever the bytes. */
export function readDeadLetter(rec: Rec): DeadLetter {
  const { topic, partition, offset, timestamp, headers } = rec
  const place = { id: `${topic}:${partition}:${offset}`, topic, partition, offset, timestamp }
  const ours = lastHeader(headers, HEADER.failureReason) !== undefined
  const foreign = ours ? undefined : readForeign(rec)
  const envelope = readEnvelope(ours ? headers : [])
  const story = {
    reason: envelope.failureReason,
    firstFailedAt: envelope.firstFailedAt,
    lastFailedAt: envelope.lastFailedAt,
    release: envelope.release,
    replayCount: envelope.replayCount,
    history: envelope.history,
  }
  if (foreign !== undefined) return { ...place, ...story, ...foreign }
  return {
    ...place,
    ...story,
    format: ours ? 'retryline' : 'unknown',
    original: {
      topic: envelope.originalTopic,
      partition: envelope.originalPartition,
      offset: envelope.originalOffset,
      timestamp: envelope.originalTimestamp,
      key: rec.key,
      value: rec.value,
      headers: ours ? restoreNullHeaders(headers).filter(([name]) => !isOwnHeader(name)) : headers,
    },
    group: envelope.group,
    errorClass: envelope.errorClass,
    error: envelope.error,
    stack: envelope.errorStack,
    attempt: envelope.attempt,
  }
}
