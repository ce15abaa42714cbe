import type { Header } from '../record'

/** What a dead letter was: what a replay sends, byte for byte. */
export interface Original {
  /** Where it first stood, as far as that was written down. */
  readonly topic: string | undefined
  readonly partition: number | undefined
  readonly offset: bigint | undefined
  /** ms since the epoch. */
  readonly timestamp: number | undefined
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** Without those that whoever dead-lettered it has added. */
  readonly headers: readonly Header[]
}

/** Why it died. A field is undefined where it was not written down, or cannot be read. */
export interface Death {
  /** The consumer group, connector or share group that gave it up. */
  readonly group: string | undefined
  readonly errorClass: string | undefined
  readonly error: string | undefined
  readonly stack: string | undefined
  /** Attempts made. */
  readonly attempt: number | undefined
}
