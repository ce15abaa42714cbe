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
 * it throws sends the record to the dead letter topic as `undecodable`, unless it is a `RetryableError` (a schema
 * registry that is down, say).
 */
export type Decode<V = unknown> = (value: Buffer | null, info: DecodeInfo) => V | Promise<V>
