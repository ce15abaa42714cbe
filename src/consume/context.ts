import { RetrylineError } from '../errors'
import type { Logger } from '../ports'
import type { HandlerContext, OutgoingMessage, Source } from '../record'
import type { Attempt } from './attempt'
import { checkAllOutgoing } from './staged'

/** What the handler gets: cheap to make for each record, since most handlers look at little of it. */
export class Context implements HandlerContext {
  readonly attempt: number
  readonly maxAttempts: number
  readonly tryInAttempt: number
  readonly #attempt: Attempt
  readonly #logger: Logger

  constructor(attempt: Attempt, logger: Logger) {
    this.attempt = attempt.number
    this.maxAttempts = attempt.maxAttempts
    this.tryInAttempt = attempt.tryInAttempt
    this.#attempt = attempt
    this.#logger = logger
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
    // Also in the gap between two quick tries: what the next one sends is its own.
    if (attempt.state !== 'running' || attempt.triesEnded >= this.tryInAttempt) {
      throw new RetrylineError(
        'RETRYLINE_STATE',
        `ctx.send() was called after the handler of ${attempt.lane.topic}/${attempt.lane.partition}@${attempt.entry.offset} ` +
          'had ended; await everything that sends inside the handler',
      )
    }
    const checked = checkAllOutgoing(messages)
    const sends = (attempt.sends ??= [])
    for (const one of checked) sends.push(one)
  }
}

export function withFields(logger: Logger, own: Record<string, unknown>): Logger {
  const level =
    (name: keyof Logger) =>
    (message: string, fields?: Record<string, unknown>): void =>
      logger[name](message, { ...own, ...fields })
  return { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') }
}
