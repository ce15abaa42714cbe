import type { Origin, PastFailure, Replay } from '../envelope'
import type { Header } from '../record'
import type { Tier } from '../topology'

/** What a record turned out to be, once its headers have been read and brought into bounds. Times: ms since the epoch. */
interface Read {
  /** The main topic that it belongs to; always one of the topology. */
  readonly main: string
  /** The tier that it was read from; `undefined` on the main topic. */
  readonly tier: Tier | undefined
  /** 1 to `maxAttempts`. */
  readonly attempt: number
  /** `undefined` on the main topic. */
  readonly dueAt: number | undefined
  readonly original: Origin
  /** `undefined` where it has not failed yet. */
  readonly firstFailedAt: number | undefined
  /** Oldest first. */
  readonly history: readonly PastFailure[]
  /** Of a record that was replayed from the dead letter topic. */
  readonly replay: Replay | undefined
  /** The group that wrote the copy, where one is named. */
  readonly group: string | undefined
  /** As they stand on the record, with null given back where it was null. */
  readonly headers: readonly Header[]
  /** What was wrong with the headers, and what was done instead; one line each. */
  readonly problems: readonly string[]
}

/** To be handled, once it is due. */
export interface Handled extends Read {
  readonly kind: 'handle'
}

/** Another group's: to be passed over. */
export interface Skipped {
  readonly kind: 'skip'
  readonly group: string
}

/** Not to be handled: to the dead letter topic of `main`. `attempt` is the number made so far. */
export interface Rejected extends Read {
  readonly kind: 'reject'
  readonly reason: 'bad-envelope'
}

export type Opened = Handled | Skipped | Rejected
