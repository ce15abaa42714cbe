/**
 * The wire format of the envelope: every header of ours, and the most bytes that its value may have. Names and formats
 * are public; `test/golden/headers.json` holds them. Values are UTF-8 text, never binary numbers.
 *
 * The names are ours wherever they stand: a header of one of these names on a record from elsewhere is not believed on a
 * main topic, and is replaced when the record is copied.
 */

export const HEADER = {
  /** On a retry topic the number of the attempt about to be made; on the dead letter topic the number made. */
  attempt: 'x-attempt',
  /** ms since the epoch. */
  dueAt: 'x-due-at',
  originalTopic: 'x-original-topic',
  originalPartition: 'x-original-partition',
  originalOffset: 'x-original-offset',
  /** ms since the epoch; -1 where the record had none. */
  originalTimestamp: 'x-original-timestamp',
  /** The group whose handler failed. */
  group: 'x-consumer-group',
  /** The release that ran, when given. */
  release: 'x-release',
  /** ISO 8601, UTC, with ms. */
  firstFailedAt: 'x-first-failed-at',
  lastFailedAt: 'x-last-failed-at',
  errorClass: 'x-error-class',
  error: 'x-error',
  /** See history.ts. */
  history: 'x-history',
  /** See null-headers.ts. */
  nullHeaders: 'x-null-headers',
  /** Dead letter topic only. */
  errorStack: 'x-error-stack',
  /** Dead letter topic only: one of FAILURE_REASONS. */
  failureReason: 'x-failure-reason',
  /** `true` on a replay, and on the retries of a replayed record. */
  replayed: 'x-replayed-from-dlq',
  replayCount: 'x-replay-count',
  /** The group that a replay is for; other groups skip it. */
  replayForGroup: 'x-replay-for-group',
} as const

export type Field = keyof typeof HEADER
export type OwnHeader = (typeof HEADER)[Field]

/** The most bytes of a value that we write, and that we read. Longer texts are cut; a longer anything else is unreadable. */
export const LIMIT: Readonly<Record<Field, number>> = {
  attempt: 15,
  dueAt: 15,
  // Kafka's own limit for topic names.
  originalTopic: 249,
  originalPartition: 10,
  originalOffset: 19,
  originalTimestamp: 20,
  // Kafka sets no limit below 32 KB; ours keeps the envelope small. buildTopology refuses a longer one.
  group: 255,
  release: 255,
  firstFailedAt: 24,
  lastFailedAt: 24,
  errorClass: 256,
  error: 1024,
  history: 4096,
  nullHeaders: 16_384,
  errorStack: 8192,
  failureReason: 32,
  replayed: 4,
  replayCount: 15,
  replayForGroup: 255,
}

/** Field by header name, in the order of writing. */
export const FIELD_OF: ReadonlyMap<string, Field> = new Map(
  (Object.keys(HEADER) as Field[]).map((field) => [HEADER[field], field]),
)

/** Whether a header name is one of ours. */
export function isOwnHeader(name: string): boolean {
  return FIELD_OF.has(name)
}

// The lengths of name and value are varints: one byte for our names, at most three for our values.
const LENGTHS = 4

/**
 * The most bytes that our headers add to a record, all of them together (about 31 KB, of which 16 KB are for the names
 * of null headers and 8 KB for the stack). A retry or dead letter topic whose `max.message.bytes` exceeds the main
 * topic's by this much takes every copy.
 */
export const OWN_HEADER_BUDGET: number = [...FIELD_OF].reduce(
  (sum, [name, field]) => sum + name.length + LIMIT[field] + LENGTHS,
  0,
)

/** Why a record is on the dead letter topic: the values of `x-failure-reason`. */
export const FAILURE_REASONS = [
  /** The last attempt failed, with an error that might have gone away. */
  'exhausted',
  /** The classifier said that retrying cannot help. */
  'non-retryable',
  /** No rule knows the error, and `unknownErrors` is 'dead-letter'. */
  'unclassified',
  /** The value could not be decoded, or does not fit its schema. */
  'undecodable',
  /** The last attempt ended in a handler time-out. */
  'timeout',
  /** The next attempt would have been later than the deadline allows. */
  'deadline',
  /** Headers on a retry topic that cannot be believed. */
  'bad-envelope',
  /** The copy does not fit its retry topic. */
  'too-large',
  /** The process died in this record's handler again and again. */
  'crash-loop',
  /** Replayed as often as is allowed, and failed again. */
  'replay-cap',
] as const

export type FailureReason = (typeof FAILURE_REASONS)[number]
