/**
 * Our words for a record. A record comes from the driver as a `Message` (the shape kafkajs gives a handler) and is
 * turned into a `Rec` only where its headers must be read: on a retry topic and when it fails.
 */

/** What kafkajs gives for one header: absent, null, text or bytes, or several of these for a repeated name. */
export type HeaderValue = Buffer | string | null | undefined | (Buffer | string | null | undefined)[]

/** A message as an `eachMessage` handler sees it: the shape of kafkajs's `KafkaMessage`. */
export interface Message {
  key: Buffer | null
  value: Buffer | null
  /** ms since the epoch, as decimal text. */
  timestamp: string
  /** Decimal text; the digits of a `bigint`. */
  offset: string
  attributes: number
  headers?: { [name: string]: HeaderValue }
  size?: number
}

/** One header; a name may come several times, in order. A `null` value is Kafka's null header. */
export type Header = readonly [name: string, value: Buffer | null]

/** Where a record stands. */
export interface Position {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
}

export interface Rec extends Position {
  /** ms since the epoch; -1, as in Kafka itself, where the record has none. */
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}

/** A record about to be written. Its partition is chosen before the first try and kept at every try. */
export interface Outgoing {
  readonly topic: string
  readonly partition: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}
