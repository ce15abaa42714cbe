import { type Header, truncateUtf8 } from '../record'
import { isoTime } from './formats'
import { writeHistory, type PastFailure } from './history'
import { HEADER, isOwnHeader, LIMIT, type FailureReason, type Field } from './names'
import { nameNullHeaders } from './null-headers'

/** Where a record first stood: its first delivery, whose ids the handler sees at every attempt. */
export interface Origin {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  /** ms since the epoch; -1 where the record had none. */
  readonly timestamp: number
}

/** What a replay wrote, kept on the retries of the replayed record and on the dead letter that it may become again. */
export interface Replay {
  readonly count: number
  /** The group it is for; for all where absent. */
  readonly forGroup?: string | undefined
}

/** The envelope of a copy. Times are ms since the epoch; texts are cut to their limits. */
export interface EnvelopeFields {
  readonly attempt: number
  /** On a retry topic only. */
  readonly dueAt?: number | undefined
  readonly original: Origin
  readonly group: string
  readonly release?: string | undefined
  readonly firstFailedAt: number
  readonly lastFailedAt: number
  readonly errorClass: string
  readonly error?: string | undefined
  readonly history: readonly PastFailure[]
  /** On the dead letter topic only. */
  readonly errorStack?: string | undefined
  /** On the dead letter topic only. */
  readonly failureReason?: FailureReason | undefined
  readonly replay?: Replay | undefined
}

/**
 * The headers of a copy: the foreign ones as they are, in their order, then ours. Headers of our names on the source
 * are replaced, not appended to. A null value becomes empty and is named in `x-null-headers`, so the source's own nulls
 * must have been restored before (restoreNullHeaders).
 */
export function writeEnvelope(source: readonly Header[], fields: EnvelopeFields): Header[] {
  const { headers, nulls } = copyForeign(source)
  put(headers, 'attempt', String(fields.attempt))
  if (fields.dueAt !== undefined) put(headers, 'dueAt', String(fields.dueAt))
  putOrigin(headers, fields.original)
  put(headers, 'group', fields.group)
  put(headers, 'release', fields.release)
  put(headers, 'firstFailedAt', isoTime(fields.firstFailedAt))
  put(headers, 'lastFailedAt', isoTime(fields.lastFailedAt))
  put(headers, 'errorClass', fields.errorClass)
  put(headers, 'error', fields.error)
  if (fields.history.length > 0) put(headers, 'history', writeHistory(fields.history))
  put(headers, 'nullHeaders', nulls)
  put(headers, 'errorStack', fields.errorStack)
  put(headers, 'failureReason', fields.failureReason)
  if (fields.replay !== undefined) putReplay(headers, fields.replay)
  return headers
}

/**
 * The headers of a replay. The story of the failure ends here: `x-attempt` starts again at 1, and so does the deadline.
 * Where the record first stood is kept, so that ids made from it hold.
 */
export function writeReplay(source: readonly Header[], original: Origin, replay: Replay): Header[] {
  const { headers, nulls } = copyForeign(source)
  put(headers, 'attempt', '1')
  putOrigin(headers, original)
  put(headers, 'nullHeaders', nulls)
  putReplay(headers, replay)
  return headers
}

/** The same envelope without its large parts, for a record that did not fit with them. Where and why are kept. */
export function slimFields(fields: EnvelopeFields): EnvelopeFields {
  return { ...fields, error: undefined, errorStack: undefined, history: [] }
}

/** The foreign headers with empty for null, and the text that names the nulls. */
function copyForeign(source: readonly Header[]): { headers: Header[]; nulls: string | undefined } {
  const foreign = source.filter(([name]) => !isOwnHeader(name))
  const nulls = nameNullHeaders(foreign)
  const headers = foreign.map((header): Header => (header[1] === null ? [header[0], EMPTY] : header))
  return { headers, nulls }
}

function putOrigin(headers: Header[], original: Origin): void {
  put(headers, 'originalTopic', original.topic)
  put(headers, 'originalPartition', String(original.partition))
  put(headers, 'originalOffset', String(original.offset))
  put(headers, 'originalTimestamp', String(original.timestamp))
}

function putReplay(headers: Header[], replay: Replay): void {
  put(headers, 'replayed', 'true')
  put(headers, 'replayCount', String(replay.count))
  put(headers, 'replayForGroup', replay.forGroup)
}

function put(headers: Header[], field: Field, text: string | undefined): void {
  if (text !== undefined) headers.push([HEADER[field], encode(text, LIMIT[field])])
}

/** Most texts fit, and are encoded once; one that is far too long is never encoded whole. */
function encode(text: string, limit: number): Buffer {
  if (text.length <= limit) {
    const bytes = Buffer.from(text)
    if (bytes.length <= limit) return bytes
  }
  return Buffer.from(truncateUtf8(text, limit))
}

const EMPTY = Buffer.alloc(0)
