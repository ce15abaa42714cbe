/**
 * One attempt at a record: a handler call, or a few where `immediate` allows quick tries.
 *
 * States:  running -> ended | abandoned
 *   - time out: the signal is aborted; the attempt ends when the handler settles, or is abandoned after a grace.
 *   - `abandoned`: nobody waits any more; when the handler settles after all, that changes nothing.
 */
import { RetrylineError } from '../errors'
import type { Clock, Logger, Work } from '../ports'
import type { HandlerContext, OutgoingMessage, Source } from '../record'
import type { Entry, Lane } from './lane'

export type Outcome =
  | { readonly kind: 'ok' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'timeout' }
  /** The handler paused the lane and threw, or a shutdown cut it short: the same record again, nothing counted. */
  | { readonly kind: 'again' }

export class Attempt {
  state: 'running' | 'ended' | 'abandoned' = 'running'
  tryInAttempt = 1
  /** Monotonic, ms. */
  startedAt = 0
  deadlineAt = 0
  timedOut = false
  paused = false
  /** Aborted by a shutdown: whatever the handler makes of it, the record is left to the next owner. */
  cutShort = false
  sends: OutgoingMessage[] | undefined
  value: unknown
  /** Copies of the same record, delivered again while this call runs: they take its outcome. */
  joiners: ((outcome: Outcome) => void)[] | undefined
  work: Work | undefined
  #controller: AbortController | undefined

  constructor(
    readonly lane: Lane,
    readonly entry: Entry,
    readonly number: number,
    readonly maxAttempts: number,
  ) {}

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  abort(reason: RetrylineError): void {
    // Made here where the handler has not asked for it yet: it may do so later, and must find it aborted.
    this.#controller ??= new AbortController()
    this.#controller.abort(reason)
  }
}

/** What the handler gets: cheap to make for each record, since most handlers look at little of it. */
export class Context implements HandlerContext {
  readonly attempt: number
  readonly maxAttempts: number
  readonly #attempt: Attempt
  readonly #logger: Logger

  constructor(attempt: Attempt, logger: Logger) {
    this.attempt = attempt.number
    this.maxAttempts = attempt.maxAttempts
    this.#attempt = attempt
    this.#logger = logger
  }

  get tryInAttempt(): number {
    return this.#attempt.tryInAttempt
  }

  get dueAt(): number {
    // Undefined on the main topic; the interface has the property optional, and a getter cannot be.
    return this.#attempt.entry.opened?.dueAt as number
  }

  get firstFailedAt(): Date {
    const at = this.#attempt.entry.opened?.firstFailedAt
    return (at === undefined ? undefined : new Date(at)) as Date
  }

  get source(): Source {
    const { lane, entry } = this.#attempt
    return { topic: lane.topic, partition: lane.partition, offset: entry.offset }
  }

  get value(): unknown {
    return this.#attempt.value
  }

  get signal(): AbortSignal {
    return this.#attempt.signal
  }

  get logger(): Logger {
    return withFields(this.#logger, { ...this.source, attempt: this.attempt })
  }

  send(messages: OutgoingMessage | readonly OutgoingMessage[]): void {
    const attempt = this.#attempt
    if (attempt.state !== 'running') {
      throw new RetrylineError(
        'RETRYLINE_STATE',
        `ctx.send() was called after the handler of ${attempt.lane.topic}/${attempt.lane.partition}@${attempt.entry.offset} ` +
          'had ended; await everything that sends inside the handler',
      )
    }
    const list = Array.isArray(messages) ? (messages as readonly OutgoingMessage[]) : [messages as OutgoingMessage]
    ;(attempt.sends ??= []).push(...list)
  }
}

function withFields(logger: Logger, own: Record<string, unknown>): Logger {
  const level =
    (name: keyof Logger) =>
    (message: string, fields?: Record<string, unknown>): void =>
      logger[name](message, { ...own, ...fields })
  return { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') }
}

/**
 * Watches running attempts: one timer for all, set for the earliest. An attempt past its time has its signal aborted;
 * one that has not settled a grace later is handed to `abandon`.
 */
export class Watchdog {
  readonly #attempts = new Set<Attempt>()
  #timer: { at: number; cancel(): void } | undefined

  constructor(
    private readonly clock: Clock,
    private readonly timeoutMs: number,
    private readonly graceMs: number,
    private readonly abandon: (attempt: Attempt, during: 'handler-timeout' | 'shutdown') => void,
  ) {}

  get running(): ReadonlySet<Attempt> {
    return this.#attempts
  }

  add(attempt: Attempt): void {
    attempt.startedAt = this.clock.monotonic()
    attempt.deadlineAt = attempt.startedAt + this.timeoutMs
    this.#attempts.add(attempt)
    if (this.#timer === undefined || attempt.deadlineAt < this.#timer.at) this.#arm(attempt.deadlineAt)
  }

  remove(attempt: Attempt): void {
    // The timer is left: one for each record would cost more than the record. It finds the next deadline when it fires.
    this.#attempts.delete(attempt)
  }

  close(): void {
    this.#disarm()
  }

  /** The shutdown has used up its time: aborts what runs, and after the grace gives it up. */
  abortAll(during: RetrylineError): void {
    for (const attempt of this.#attempts) {
      attempt.cutShort = true
      attempt.abort(during)
    }
  }

  abandonAll(): void {
    for (const attempt of [...this.#attempts]) this.#giveUp(attempt, 'shutdown')
  }

  #giveUp(attempt: Attempt, during: 'handler-timeout' | 'shutdown'): void {
    this.remove(attempt)
    this.abandon(attempt, during)
  }

  #arm(at: number): void {
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
    for (const attempt of [...this.#attempts]) {
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
