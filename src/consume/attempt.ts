/**
 * One attempt at a record: a handler call, or a few where `immediate` allows quick tries.
 *
 * States:  running -> ended | abandoned
 *   - time out: the signal is aborted; the attempt ends when the handler settles, or is abandoned after a grace.
 *   - `abandoned`: nobody waits any more; when the handler settles after all, that changes nothing.
 */
import type { RetrylineError } from '../errors'
import type { Timer, Work } from '../ports'
import type { OutgoingMessage } from '../record'
import type { Entry, Lane, Outcome, UnfinishedAttempt } from './lane'

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
  sends: OutgoingMessage[] | undefined
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

  abort(reason: RetrylineError): void {
    // Made here where the handler has not asked for it yet: it may do so later, and must find it aborted.
    this.#controller ??= new AbortController()
    this.#controller.abort(reason)
  }
}
