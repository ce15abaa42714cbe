/**
 * What a handler is and what it is given. The first argument has the shape of kafkajs's `EachMessagePayload`, so that an
 * existing `eachMessage` handler fits as it is (a type test holds it); everything of ours is in the second.
 */

/**
 * A message as handlers are typed to see it: kafkajs's `KafkaMessage`, so that functions written for that take it.
 * As in kafkajs, a null header is `null` at run time although the type cannot say so.
 */
export interface HandlerMessage {
  key: Buffer | null
  value: Buffer | null
  /** ms since the epoch, as decimal text; that of the first delivery, also on a retry. */
  timestamp: string
  /** Decimal text; that of the first delivery, also on a retry. Where the copy stands is `ctx.source`. */
  offset: string
  attributes: number
  /** As they stand on the record, the envelope's own (`x-attempt` and so on) included. Never absent; may be empty. */
  headers: { [name: string]: Buffer | string | (Buffer | string)[] | undefined }
  size?: never
}

/** The first argument of a handler. */
export interface EachMessage {
  /** The topic of the first delivery, also on a retry. */
  topic: string
  /** The partition of the first delivery, also on a retry. */
  partition: number
  message: HandlerMessage
  /** Cheap, and not needed: heartbeats go on while a handler runs. Kept so that existing handlers work. */
  heartbeat(): Promise<void>
  /**
   * Stops this lane from starting further records until the returned function is called. Pause and then throw means
   * "this record again, after the resume": no attempt is counted and nothing is routed.
   */
  pause(): () => void
}

/** Where a record stands. The offset is decimal text. */
export interface Source {
  readonly topic: string
  readonly partition: number
  readonly offset: string
}

/** A record that a handler sends with `ctx.send()`. */
export interface OutgoingMessage {
  readonly topic: string
  readonly key?: Buffer | string | null
  /** `null` is a tombstone. */
  readonly value: Buffer | string | null
  readonly headers?: { readonly [name: string]: Buffer | string | readonly (Buffer | string)[] | undefined }
  /** Chosen from the key when left out. */
  readonly partition?: number
}

/** The shape of the `Logger` port, which this stage does not know; a type test holds the two equal. */
export interface HandlerLogger {
  debug(message: string, fields?: Record<string, unknown>): void
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

/** The second argument of a handler. `V` is the type of the decoded value. */
export interface HandlerContext<V = unknown> {
  /** 1 at the first delivery, `maxAttempts` at the last. */
  readonly attempt: number
  /** The number of delays in the schedule, plus 1. */
  readonly maxAttempts: number
  /** 1, or more where `immediate` gives an attempt several quick tries. */
  readonly tryInAttempt: number
  /** Retries only: the time this attempt was due, in ms since the epoch. */
  readonly dueAt?: number
  /** Retries only: when the first attempt failed. */
  readonly firstFailedAt?: Date
  /** Where the delivered copy stands: on the main topic, or on a retry topic. */
  readonly source: Source
  /**
   * The decoded value, where `decode` or `schema` is set; otherwise `undefined`. A tombstone is `null`, provided that
   * the schema (where there is one) accepts null.
   */
  readonly value: V
  /** Aborted when the handler has run for `handlerTimeout`, and when a shutdown has used up its time. */
  readonly signal: AbortSignal
  /** The consumer's logger, with the record's place in its fields. */
  readonly logger: HandlerLogger
  /**
   * Stages records; they are published, acknowledged by all in-sync replicas, before this record counts as done,
   * and dropped where the attempt fails.
   */
  send(messages: OutgoingMessage | readonly OutgoingMessage[]): void
}

/** Handles one record. A promise is waited for; throwing (or rejecting) is a failure, which is then classified. */
export type Handler<V = unknown> = (payload: EachMessage, ctx: HandlerContext<V>) => unknown
