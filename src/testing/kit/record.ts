import { checkRecord } from '../checked-record'

/** What `record()` makes a record of. */
export interface RecordSpec {
  /** An object or a list becomes JSON; text and bytes are taken as they are; null is a tombstone. Must be given. */
  value: object | string | Uint8Array | null
  /** Null where it is left out. */
  key?: string | Uint8Array | null
  /** By name (a list for a repeated name), or as pairs in their order; null is Kafka's null header. None where left out. */
  headers?: HeadersSpec
  topic?: string
  partition?: number
  offset?: bigint | number | string
  /** A date, or ms since the epoch. */
  timestamp?: Date | number | string
}

export type HeadersSpec =
  | Readonly<Record<string, string | Uint8Array | null | readonly (string | Uint8Array | null)[]>>
  | readonly (readonly [name: string, value: string | Uint8Array | null])[]

/** A record for `kafka.produce(topic, …)` and for `attempt(handler, …)`. Only what was given is there of its place. */
export interface TestRecord {
  readonly topic?: string
  readonly partition?: number
  readonly offset?: bigint
  /** ms since the epoch. */
  readonly timestamp?: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[]
}

/**
 * Builds a record: `record({ key: 'order-17', value: { total: 42 } })`. Throws RETRYLINE_TESTING, naming field, value and
 * mend, for a value that is left out, for a number, a Map, a promise and whatever else is no record.
 */
export function record(spec: RecordSpec): TestRecord {
  const { topic, partition, offset, timestamp, key, value, headers } = checkRecord('record()', spec, true)
  return {
    ...(topic === undefined ? {} : { topic }),
    ...(partition === undefined ? {} : { partition }),
    ...(offset === undefined ? {} : { offset }),
    ...(timestamp === undefined ? {} : { timestamp }),
    key,
    value,
    headers,
  }
}
