import type { HandlerMessage } from '../record'

/** What a `decode` function is told besides the bytes. */
export interface DecodeInfo {
  /** The topic of the first delivery, also on a retry. */
  readonly topic: string
  readonly partition: number
  readonly key: Buffer | null
  readonly headers: HandlerMessage['headers']
}

/**
 * Turns the bytes of a value into what the handler finds in `ctx.value`. Called for tombstones too, with `null`. What
 * it throws is judged like any error: what the table retries (a `RetryableError`, ECONNREFUSED because a schema
 * registry is down) is retried, anything else goes to the dead letter topic as `undecodable`.
 */
export type Decode<V = unknown> = (value: Buffer | null, info: DecodeInfo) => V | Promise<V>
