import { RetrylineError } from '../errors'
import type { Clock } from '../ports'
import type { Attempt } from './attempt'

/**
 * Watches running attempts: one timer for all, set for the earliest. An attempt past its time has its signal aborted;
 * one that has not settled a grace later is handed to `abandon`.
 */
export class Watchdog {
  /** A list through the attempts themselves, in order of start: joining and leaving it costs next to nothing. */
  #first: Attempt | undefined
  #last: Attempt | undefined
  #timer: { at: number; cancel(): void } | undefined

  constructor(
    private readonly clock: Clock,
    private readonly timeoutMs: number,
    private readonly graceMs: number,
    private readonly abandon: (attempt: Attempt, during: 'handler-timeout' | 'shutdown') => void,
  ) {}

  get running(): Attempt[] {
    const list: Attempt[] = []
    for (let at = this.#first; at; at = at.next) list.push(at)
    return list
  }

  /** `now` is monotonic and may be a little old: what a late look costs is a time-out that comes as much later. */
  add(attempt: Attempt, now: number): void {
    attempt.startedAt = now
    attempt.deadlineAt = attempt.startedAt + this.timeoutMs
    attempt.previous = this.#last
    if (this.#last) this.#last.next = attempt
    else this.#first = attempt
    this.#last = attempt
    this.#arm(attempt.deadlineAt)
  }

  /** `next` takes the place of one that has ended. Whenever the timer fires for that one, it finds this one. */
  replace(ended: Attempt, next: Attempt, now: number): void {
    const { previous, next: behind } = ended
    next.startedAt = now
    next.deadlineAt = now + this.timeoutMs
    next.previous = previous
    next.next = behind
    if (previous) previous.next = next
    else this.#first = next
    if (behind) behind.previous = next
    else this.#last = next
    ended.previous = ended.next = undefined
  }

  remove(attempt: Attempt): void {
    // The timer is left: one for each record would cost more than the record. It finds the next deadline when it fires.
    const { previous, next } = attempt
    if (previous) previous.next = next
    else if (this.#first === attempt) this.#first = next
    else return // not in the list (any more)
    if (next) next.previous = previous
    else this.#last = previous
    attempt.previous = attempt.next = undefined
  }

  close(): void {
    this.#disarm()
  }

  /** The shutdown has used up its time: aborts what runs, and after the grace gives it up. */
  abortAll(during: RetrylineError): void {
    for (const attempt of this.running) {
      attempt.cutShort = true
      attempt.abort(during)
    }
  }

  abandonAll(): void {
    for (const attempt of this.running) this.#giveUp(attempt, 'shutdown')
  }

  #giveUp(attempt: Attempt, during: 'handler-timeout' | 'shutdown'): void {
    this.remove(attempt)
    this.abandon(attempt, during)
  }

  /** An earlier look stays: who is due later is found by it. */
  #arm(at: number): void {
    if (this.#timer !== undefined && this.#timer.at <= at) return
    this.#disarm()
    const timer = this.clock.after(Math.max(0, at - this.clock.monotonic()), () => this.#look(), 'deadline')
    this.#timer = { at, cancel: () => timer.cancel() }
  }

  #disarm(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #look(): void {
    this.#timer = undefined
    const now = this.clock.monotonic()
    let next = Infinity
    for (const attempt of this.running) {
      if (attempt.deadlineAt <= now) {
        if (attempt.timedOut) {
          this.#giveUp(attempt, 'handler-timeout')
          continue
        }
        attempt.timedOut = true
        attempt.deadlineAt = now + this.graceMs
        attempt.abort(
          new RetrylineError(
            'RETRYLINE_HANDLER_TIMEOUT',
            `the handler of ${attempt.lane.topic}/${attempt.lane.partition}@${attempt.entry.offset} did not settle ` +
              `within ${this.timeoutMs} ms`,
          ),
        )
      }
      next = Math.min(next, attempt.deadlineAt)
    }
    if (next !== Infinity) this.#arm(next)
  }
}
