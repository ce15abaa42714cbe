import { type EnvelopeFields, type PastFailure, slimFields, writeEnvelope } from '../envelope'
import type { Outgoing, Rec } from '../record'
import type { Decision } from './decide'
import type { Handled, Rejected } from './opened'
import { partitionOf } from './partition'

/** The failure that a copy tells of. */
export interface Failure {
  readonly error: { readonly name: string; readonly message: string; readonly stack?: string | undefined }
  /** The classifier's reason. */
  readonly because: string
  /** ms since the epoch. */
  readonly at: number
  /** The group whose handler failed. */
  readonly groupId: string
  readonly release?: string | undefined
  /** Start of the attempt minus its due time, ms; on retries only. */
  readonly latenessMs?: number | undefined
}

/**
 * The copy of a failed record, ready to be published: the same key and value, the same foreign headers, the envelope
 * replaced. `partitions` is how many the target topic has. With `slim` the copy goes without stack, message and history,
 * for a record that does not fit with them.
 */
export function composeCopy(
  rec: Rec,
  opened: Handled | Rejected,
  decision: Decision,
  failure: Failure,
  partitions: number,
  options: { slim?: boolean } = {},
): Outgoing {
  const fields = fieldsOf(opened, decision, failure)
  return {
    topic: decision.topic,
    partition: partitionOf({ key: rec.key, ...opened.original }, partitions),
    key: rec.key,
    value: rec.value,
    headers: writeEnvelope(opened.headers, options.slim === true ? slimFields(fields) : fields),
  }
}

function fieldsOf(opened: Handled | Rejected, decision: Decision, failure: Failure): EnvelopeFields {
  const { error, at } = failure
  const dead = decision.kind === 'dead-letter'
  return {
    attempt: decision.attempt,
    dueAt: dead ? undefined : decision.dueAt,
    original: opened.original,
    group: failure.groupId,
    release: failure.release,
    firstFailedAt: opened.firstFailedAt ?? at,
    lastFailedAt: at,
    errorClass: error.name,
    error: error.message,
    history: opened.kind === 'reject' ? opened.history : [...opened.history, pastFailure(opened, failure)],
    errorStack: dead ? error.stack : undefined,
    failureReason: dead ? decision.reason : undefined,
    replay: opened.replay,
  }
}

function pastFailure(opened: Handled, failure: Failure): PastFailure {
  const { error, because, at, latenessMs } = failure
  const late = latenessMs === undefined ? undefined : Math.max(0, latenessMs)
  return { attempt: opened.attempt, at, class: error.name, because, late }
}
