import { type Header, lastHeader } from '../record'
import { readHistory, type PastFailure } from './history'
import { readName, readOffset, readPartition, readText, readTime, readTimestamp, readTopic, readWhole } from './formats'
import { readNullHeaders } from './null-headers'
import { FAILURE_REASONS, FIELD_OF, HEADER, LIMIT, type FailureReason, type Field, type OwnHeader } from './names'

/** What our headers say. A field is `undefined` where its header is missing or cannot be read. Times are ms since the epoch. */
export interface Envelope {
  readonly attempt: number | undefined
  readonly dueAt: number | undefined
  readonly originalTopic: string | undefined
  readonly originalPartition: number | undefined
  readonly originalOffset: bigint | undefined
  readonly originalTimestamp: number | undefined
  readonly group: string | undefined
  readonly release: string | undefined
  readonly firstFailedAt: number | undefined
  readonly lastFailedAt: number | undefined
  readonly errorClass: string | undefined
  readonly error: string | undefined
  readonly errorStack: string | undefined
  readonly failureReason: FailureReason | undefined
  /** Oldest first; empty where there is none. */
  readonly history: readonly PastFailure[]
  readonly replayed: boolean
  readonly replayCount: number | undefined
  readonly replayForGroup: string | undefined
  /** Headers that are there and cannot be read: their fields are `undefined` for this reason. */
  readonly unreadable: ReadonlySet<OwnHeader>
  /** One line for everything that is not as we write it: the header, its value (cut), and what was done. */
  readonly problems: readonly string[]
}

/** How much of a bad value a problem shows, in bytes. */
const SHOWN = 40

/**
 * Reads our headers. Never throws, whatever the bytes, and looks at no value past its limit. The last value of a
 * repeated header counts, as with Kafka's own `lastHeader`: one who appends, appends behind ours. It is reported.
 */
export function readEnvelope(headers: readonly Header[]): Envelope {
  const found = new Map<Field, Buffer | null>()
  const problems: string[] = []
  for (const [name, value] of headers) {
    const field = FIELD_OF.get(name)
    if (field === undefined) continue
    if (found.has(field)) problems.push(`${name} is repeated; the last value counts`)
    found.set(field, value)
  }
  const unreadable = new Set<OwnHeader>()

  const get = <T>(field: Field, read: (bytes: Buffer) => T | undefined): T | undefined => {
    const bytes = found.get(field)
    if (bytes === undefined) return undefined
    const value = bytes === null || bytes.length > LIMIT[field] ? undefined : read(bytes)
    if (value === undefined) {
      unreadable.add(HEADER[field])
      problems.push(`${HEADER[field]} cannot be read: ${show(bytes)}`)
    }
    return value
  }

  // Used by restoreNullHeaders; here only so that a bad one is reported.
  get('nullHeaders', (bytes) => readNullHeaders(readText(bytes)))
  return {
    attempt: get('attempt', readWhole),
    dueAt: get('dueAt', readWhole),
    originalTopic: get('originalTopic', readTopic),
    originalPartition: get('originalPartition', readPartition),
    originalOffset: get('originalOffset', readOffset),
    originalTimestamp: get('originalTimestamp', readTimestamp),
    group: get('group', readName),
    release: get('release', readText),
    firstFailedAt: get('firstFailedAt', readTime),
    lastFailedAt: get('lastFailedAt', readTime),
    errorClass: get('errorClass', readText),
    error: get('error', readText),
    errorStack: get('errorStack', readText),
    failureReason: get('failureReason', readReason),
    history: get('history', (bytes) => readHistory(readText(bytes))) ?? [],
    replayed: get('replayed', readTrue) ?? false,
    replayCount: get('replayCount', readWhole),
    replayForGroup: get('replayForGroup', readName),
    unreadable,
    problems,
  }
}

/**
 * As readEnvelope, for a record on a main topic: there our headers count only where a replay set them
 * (`x-replayed-from-dlq` is `true`). Otherwise they are somebody else's, and `undefined` is the answer.
 */
export function readMainEnvelope(headers: readonly Header[]): Envelope | undefined {
  return isReplayed(headers) ? readEnvelope(headers) : undefined
}

/** Whether the record says of itself that it was replayed from a dead letter topic. */
export function isReplayed(headers: readonly Header[]): boolean {
  const value = lastHeader(headers, HEADER.replayed)
  return value != null && readTrue(value) === true
}

function readTrue(bytes: Buffer): true | undefined {
  return bytes.length === 4 && bytes.toString('latin1') === 'true' ? true : undefined
}

function readReason(bytes: Buffer): FailureReason | undefined {
  const text = readText(bytes)
  return FAILURE_REASONS.find((reason) => reason === text)
}

function show(bytes: Buffer | null): string {
  if (bytes === null) return 'null'
  const text = JSON.stringify(bytes.toString('utf8', 0, SHOWN))
  return bytes.length > SHOWN ? `${text}... (${bytes.length} bytes)` : text
}
