/**
 * One attempt at a record: a handler call, or a few where `immediate` allows quick tries.
 *
 * States:  running -> ended | abandoned
 *   - time out: the signal is aborted; the attempt ends when the handler settles, or is abandoned after a grace.
 *   - `abandoned`: nobody waits any more; when the handler settles after all, that changes nothing.
 */
import type { RetrylineError } from '../errors'
import type { Timer, Work } from '../ports'
import type { Entry, Lane, Outcome, UnfinishedAttempt } from './lane'
import type { Staged } from './staged'

/** What a call has sent for several records at once: published once, before any of them is done with. */
export interface SharedSends {
  readonly messages: Staged[]
  published: Promise<SentResult> | undefined
}

/** `closed`: it is left to the next owner. */
export type SentResult = 'through' | 'closed' | { readonly error: unknown }

export class Attempt implements UnfinishedAttempt {
  state: 'running' | 'ended' | 'abandoned' = 'running'
  tryInAttempt = 1
  /** Neighbours in the watchdog's list. */
  previous: Attempt | undefined
  next: Attempt | undefined
  /** Monotonic, ms. */
  startedAt = 0
  deadlineAt = 0
  /** Whether the handler was called, and not only the decoder. */
  called = false
  timedOut = false
  /** Pauses of the lane that the handler has asked for and not ended. */
  pauses = 0
  /** Handler calls of this attempt that have settled. */
  triesEnded = 0
  /** Between two quick tries. */
  betweenTries: Timer | undefined
  /** Aborted by a shutdown: whatever the handler makes of it, the record is left to the next owner. */
  cutShort = false
  sends: Staged[] | undefined
  value: unknown
  joiners: ((outcome: Outcome) => void)[] | undefined
  work: Work | undefined
  #controller: AbortController | undefined

  constructor(
    readonly lane: Lane,
    readonly entry: Entry,
    readonly number: number,
    readonly maxAttempts: number,
  ) {}

  /** Whether the handler has asked for its signal: one that has not cannot have given up because of it. */
  signalSeen = false

  get signal(): AbortSignal {
    this.signalSeen = true
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  /** How many records the handler was given together with this one and has failed with the same error; 1 where it is its own. */
  get together(): number {
    return 1
  }

  /** How many records the handler was given at once; undefined where it takes one. */
  get batchSize(): number | undefined {
    return undefined
  }

  /** Whether another record of the same call has failed with the same error, and is asked about it. */
  get isEcho(): boolean {
    return false
  }

  get shared(): SharedSends | undefined {
    return undefined
  }

  abort(reason: RetrylineError): void {
    // Made here where the handler has not asked for it yet: it may do so later, and must find it aborted.
    this.#controller ??= new AbortController()
    this.#controller.abort(reason)
  }
}
