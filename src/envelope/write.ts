import { type Header, truncateUtf8 } from '../record'
import { isoTime } from './formats'
import { writeHistory, type PastFailure } from './history'
import { FIELD_OF, HEADER, isOwnHeader, LIMIT, type FailureReason, type Field } from './names'
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
  return assemble(source, {
    ...originTexts(fields.original),
    attempt: String(fields.attempt),
    dueAt: fields.dueAt === undefined ? undefined : String(fields.dueAt),
    group: fields.group,
    release: fields.release,
    firstFailedAt: isoTime(fields.firstFailedAt),
    lastFailedAt: isoTime(fields.lastFailedAt),
    errorClass: fields.errorClass,
    error: fields.error,
    history: fields.history.length === 0 ? undefined : writeHistory(fields.history),
    errorStack: fields.errorStack,
    failureReason: fields.failureReason,
    ...(fields.replay && replayTexts(fields.replay)),
  })
}

/**
 * The headers of a replay. The story of the failure ends here: `x-attempt` starts again at 1, and so does the deadline.
 * Where the record first stood is kept, so that ids made from it hold.
 */
export function writeReplay(source: readonly Header[], original: Origin, replay: Replay): Header[] {
  return assemble(source, { ...originTexts(original), ...replayTexts(replay), attempt: '1' })
}

/** The same envelope without its large parts, for a record that did not fit with them. Where and why are kept. */
export function slimFields(fields: EnvelopeFields): EnvelopeFields {
  return { ...fields, error: undefined, errorStack: undefined, history: [] }
}

type Texts = { readonly [F in Field]?: string | undefined }

function originTexts(original: Origin): Texts {
  return {
    originalTopic: original.topic,
    originalPartition: String(original.partition),
    originalOffset: String(original.offset),
    originalTimestamp: String(original.timestamp),
  }
}

function replayTexts(replay: Replay): Texts {
  return { replayed: 'true', replayCount: String(replay.count), replayForGroup: replay.forGroup }
}

function assemble(source: readonly Header[], texts: Texts): Header[] {
  const foreign = source.filter(([name]) => !isOwnHeader(name))
  const headers = foreign.map((header): Header => (header[1] === null ? [header[0], EMPTY] : header))
  const all: Texts = { ...texts, nullHeaders: nameNullHeaders(foreign) }
  for (const field of FIELD_OF.values()) {
    const text = all[field]
    if (text !== undefined) headers.push([HEADER[field], Buffer.from(truncateUtf8(text, LIMIT[field]))])
  }
  return headers
}

const EMPTY = Buffer.alloc(0)
