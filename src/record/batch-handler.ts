/** What a handler of many records at once is, and what it is given. */
import type { HandlerLogger, HandlerMessage, OutgoingMessage, Source } from './handler'

/** A record of a batch: kafkajs's `KafkaMessage`, and what a handler of one record finds in its context. */
export interface BatchMessage<V = unknown> extends HandlerMessage {
  /** The topic of the first delivery, also on a retry. */
  readonly topic: string
  /** The partition of the first delivery, also on a retry. */
  readonly partition: number
  /**
   * The decoded value, where `decode` or `schema` is set; otherwise `undefined`. A tombstone is `null`, provided that
   * the schema (where there is one) accepts null.
   */
  readonly decoded: V
  /** 1 at the first delivery, `maxAttempts` at the last. */
  readonly attempt: number
  /** Retries only: the time this attempt was due, in ms since the epoch. */
  readonly dueAt?: number
  /** Retries only: when the first attempt failed. */
  readonly firstFailedAt?: Date
  /** Where the delivered copy stands: on the main topic, or on a retry topic. */
  readonly source: Source
}

/** The first argument of a batch handler. */
export interface MessageBatch<V = unknown> {
  /** The main topic, also on a retry. */
  readonly topic: string
  /** The partition that the batch comes from; on a retry that of the retry topic. Each message says where it first stood. */
  readonly partition: number
  /** One or more, in the order in which they stand there. */
  readonly messages: readonly BatchMessage<V>[]
  /** Cheap, and not needed: heartbeats go on while a handler runs. */
  heartbeat(): Promise<void>
  /**
   * Stops this lane from starting further batches until the returned function is called. Pause and then throw means "these
   * records again, after the resume": no attempt is counted and nothing is routed.
   */
  pause(): () => void
}

/** The second argument of a batch handler. `V` is the type of the decoded values. */
export interface BatchContext<V = unknown> {
  /** The number of delays in the schedule, plus 1. */
  readonly maxAttempts: number
  /** Where the batch stands: the main topic, or a retry topic. */
  readonly source: { readonly topic: string; readonly partition: number }
  /** Aborted when the call has run for `handlerTimeout`, and when a shutdown has used up its time. */
  readonly signal: AbortSignal
  /** The consumer's logger, with the place of the batch in its fields. */
  readonly logger: HandlerLogger
  /**
   * Says that this record has failed, and why: it alone is classified, and retried or dead-lettered; the first word counts.
   * Give the message itself, or its index in `messages`. Throws RETRYLINE_STATE for anything else, and then the whole call
   * has failed, whoever catches it: otherwise the record that was meant would count as done.
   */
  fail(message: BatchMessage<V> | number, error: unknown): void
  /**
   * Stages records; they are published, acknowledged by all in-sync replicas, before any record of the batch counts as
   * done, and dropped where none of them succeeds. With `of` (a message, or its index) they belong to that one, and are
   * dropped where it fails.
   */
  send(messages: OutgoingMessage | readonly OutgoingMessage[], of?: BatchMessage<V> | number): void
}

/**
 * Handles many records of one partition. What it names with `ctx.fail` has failed, everything else is done when it returns.
 * Throwing (or rejecting) is a failure of all that it has not named.
 */
export type BatchHandler<V = unknown> = (batch: MessageBatch<V>, ctx: BatchContext<V>) => unknown
