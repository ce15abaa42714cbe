/**
 * One call of a batch handler, and the attempts at its records: what they share and what is each one's own.
 *
 * A call:  gathering (records are decoded) -> running -> ended
 *   - a member is a whole attempt: it is watched, joined, counted and concluded by itself. It may leave early: undecodable,
 *     timed out, abandoned.
 *   - `fail` and `send` count while the call runs and one of its members at least is waited for.
 */
import { show } from '../config'
import { RetrylineError } from '../errors'
import type { Logger, Work } from '../ports'
import type { BatchContext, BatchMessage, HandlerMessage, OutgoingMessage } from '../record'
import { copyHeaders, toMessageHeaders } from '../record'
import { Attempt, type SharedSends } from './attempt'
import { withFields } from './context'
import type { Entry, Lane } from './lane'
import { checkAllOutgoing } from './staged'

export class BatchMember extends Attempt {
  /** An error that is this record's alone: the handler named it, or it could not be decoded. */
  own: { readonly error: unknown } | undefined
  /** Why its signal is aborted: each has its own reason, which names it. */
  reason: RetrylineError | undefined
  /** Failed for what another of the call is asked about already. */
  echo = false

  constructor(
    readonly batch: BatchCall,
    entry: Entry,
    number: number,
    maxAttempts: number,
  ) {
    super(batch.lane, entry, number, maxAttempts)
  }

  override get together(): number {
    return this.own === undefined ? this.batch.members.length : 1
  }

  override get batchSize(): number {
    return this.batch.members.length
  }

  override get isEcho(): boolean {
    return this.echo
  }

  override get shared(): SharedSends | undefined {
    return this.batch.shared
  }

  override get signal(): AbortSignal {
    return this.batch.signal
  }

  override abort(reason: RetrylineError): void {
    this.reason ??= reason
    this.batch.abort(reason)
  }
}

export class BatchCall {
  /** Those that are given to the handler, in the order of its messages; before that, those that are to be. */
  members: BatchMember[] = []
  messages: BatchMessage[] = []
  state: 'gathering' | 'running' | 'ended' = 'gathering'
  /** Decoders that have not come to their end. */
  pending: Promise<void>[] = []
  /** Pauses of the lane that the handler has asked for and not ended. */
  pauses = 0
  signalSeen = false
  /** Monotonic, ms: one for all members, or the time-out of the first would abort the signal of those that are not due. */
  startedAt: number | undefined
  shared: SharedSends | undefined
  /** It named a record that is not in the batch: nothing that it has not named can be taken for done. */
  misuse: RetrylineError | undefined
  work: Work | undefined
  readonly #controller = new AbortController()

  constructor(readonly lane: Lane) {}

  get signal(): AbortSignal {
    this.signalSeen = true
    return this.#controller.signal
  }

  abort(reason: RetrylineError): void {
    if (!this.#controller.signal.aborted) this.#controller.abort(reason)
  }

  /** Whether it matters to anybody what the handler says. */
  get isOpen(): boolean {
    return this.state === 'running' && this.members.some(({ state }) => state === 'running')
  }

  describe(): string {
    const { lane, members } = this
    const [first] = members
    const last = members[members.length - 1]
    const range = first === last ? first?.entry.offset : `${first?.entry.offset}..${last?.entry.offset}`
    return `${lane.topic}/${lane.partition}@${range} (a batch of ${members.length})`
  }
}

export class BatchCallContext implements BatchContext {
  readonly source: { readonly topic: string; readonly partition: number }
  readonly #batch: BatchCall
  readonly #logger: Logger

  constructor(
    batch: BatchCall,
    readonly maxAttempts: number,
    logger: Logger,
  ) {
    this.#batch = batch
    this.#logger = logger
    this.source = { topic: batch.lane.topic, partition: batch.lane.partition }
  }

  get signal(): AbortSignal {
    return this.#batch.signal
  }

  get logger(): Logger {
    return withFields(this.#logger, { ...this.source, batch: this.#batch.members.length })
  }

  fail(message: BatchMessage | number, error: unknown): void {
    const member = this.#find('fail', message)
    member.own ??= { error }
  }

  send(messages: OutgoingMessage | readonly OutgoingMessage[], of?: BatchMessage | number): void {
    if (of === undefined) {
      this.#checkOpen('send')
      const checked = checkAllOutgoing(messages)
      const shared = (this.#batch.shared ??= { messages: [], published: undefined })
      for (const one of checked) shared.messages.push(one)
      return
    }
    const member = this.#find('send', of)
    try {
      const checked = checkAllOutgoing(messages)
      const sends = (member.sends ??= [])
      for (const one of checked) sends.push(one)
    } catch (error) {
      // Not thrown: the others of the call have done nothing wrong.
      member.own ??= { error }
    }
  }

  #checkOpen(what: string): void {
    if (this.#batch.isOpen) return
    throw new RetrylineError(
      'RETRYLINE_STATE',
      `ctx.${what}() was called after the handler of ${this.#batch.describe()} had ended; await everything that is to count ` +
        'inside the handler',
    )
  }

  #find(what: string, message: BatchMessage | number): BatchMember {
    this.#checkOpen(what)
    const { messages, members } = this.#batch
    const member = members[typeof message === 'number' ? message : messages.indexOf(message)]
    if (member !== undefined) return member
    const given = typeof message === 'number' ? `index ${message}` : show(message)
    this.#batch.misuse ??= new RetrylineError(
      'RETRYLINE_STATE',
      `ctx.${what}(): ${given} is not in this batch; give one of its messages as it is, or an index from 0 to ${members.length - 1}`,
    )
    throw this.#batch.misuse
  }
}

/** As the handler gets it: place and time are those of the first delivery, so that ids made from them hold. */
export function messageOf({ lane, entry, value, number }: BatchMember): BatchMessage {
  const { message, opened } = entry
  const { topic, partition } = lane
  const own = { decoded: value, attempt: number, source: { topic, partition, offset: entry.offset } }
  if (opened === undefined) {
    const headers = copyHeaders(message.headers) as HandlerMessage['headers']
    return { ...(message as HandlerMessage), headers, topic, partition, ...own }
  }
  const { original, dueAt, firstFailedAt } = opened
  return {
    ...message,
    topic: original.topic,
    partition: original.partition,
    offset: original.offset.toString(),
    timestamp: original.timestamp.toString(),
    headers: toMessageHeaders(opened.headers) as HandlerMessage['headers'],
    ...own,
    ...(dueAt !== undefined && { dueAt }),
    ...(firstFailedAt !== undefined && { firstFailedAt: new Date(firstFailedAt) }),
  } as BatchMessage
}
