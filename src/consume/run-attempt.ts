/**
 * Calls the handler for one record and says how it ended. What the handler is given, its time-out, its quick tries and
 * its pause are dealt with here; where the record goes afterwards is not.
 */
import { describeError, type Classifier } from '../classify'
import type { At, Emitter } from '../observe'
import type { Clock, Logger } from '../ports'
import { copyHeaders, type EachMessage, type Handler, type HandlerMessage, toMessageHeaders } from '../record'
import { Attempt } from './attempt'
import { Context } from './context'
import type { Decoded } from './decode'
import { pauseLane } from './handler-pause'
import type { Entry, Lane, Outcome } from './lane'
import { Watchdog } from './watchdog'

/** How long a handler may take to settle once its signal is aborted, ms. */
export const GRACE_MS = 1_000

export interface RunnerOptions {
  readonly handler: Handler
  readonly handlerTimeoutMs: number
  readonly immediate: { readonly tries: number; readonly delayMs: number }
  readonly maxAttempts: number
  readonly classifier: Classifier
  readonly clock: Clock
  readonly emitter: Emitter
  readonly logger: Logger
  /** The function that awaits the handler bears this name, so that stop() finds itself called from inside one. */
  readonly frameName: string
  /** Called once, when the attempt has ended or is abandoned. */
  readonly ended: (attempt: Attempt, outcome: Outcome) => void
  /**
   * In place of `ended`, where an attempt has simply succeeded: the next record for the same handler place and call
   * frame, or undefined. Going on in the frame saves a call, a promise and a trip through the group for each record.
   */
  readonly succeeded: (attempt: Attempt) => Entry | undefined
  /** About the present time, monotonic, ms. */
  readonly now: () => number
  /** A lane was paused or resumed by its handler. */
  readonly pauseChanged: (lane: Lane) => void
  readonly stopping: () => boolean
}

export interface AttemptRunner {
  readonly watchdog: Watchdog
  /** `decoded` is the value for `ctx.value`, where there is a decoder; the time-out counts from here. */
  start(lane: Lane, entry: Entry, decoded?: Decoded | Promise<Decoded>): void
}

export const OK: Outcome = { kind: 'ok' }
export const AGAIN: Outcome = { kind: 'again' }

export const heartbeat = (): Promise<void> => Promise.resolve()

export function createAttemptRunner(options: RunnerOptions): AttemptRunner {
  const { handler, clock, emitter, immediate, maxAttempts } = options
  const watchdog = new Watchdog(clock, options.handlerTimeoutMs, GRACE_MS, abandon)
  const reports = createReports(emitter, clock)

  // A computed name survives minifiers.
  const { [options.frameName]: call } = {
    [options.frameName]: async (first: Attempt, payload: EachMessage, context: Context): Promise<void> => {
      for (let attempt: Attempt | undefined = first; attempt;) {
        try {
          await handler(payload, context)
        } catch (error) {
          settled(attempt, { kind: 'failed', error })
          return
        }
        attempt = nextAfter(attempt)
        if (attempt === undefined) return
        attempt.called = true
        payload = payloadOf(attempt)
        context = new Context(attempt, options.logger)
      }
    },
  } as Record<string, (attempt: Attempt, payload: EachMessage, context: Context) => Promise<void>>

  function begin(lane: Lane, entry: Entry): Attempt {
    return new Attempt(lane, entry, entry.opened?.attempt ?? 1, maxAttempts)
  }

  /** Whoever listens is told durations, and gets exact ones. */
  function startTime(): number {
    return emitter.active.attempt ? clock.monotonic() : options.now()
  }

  function start(lane: Lane, entry: Entry, decoded?: Decoded | Promise<Decoded>): void {
    const attempt = begin(lane, entry)
    watchdog.add(attempt, startTime())
    if (decoded === undefined) callHandler(attempt)
    else if (!('then' in decoded)) use(attempt, decoded)
    else {
      attempt.work = clock.track?.(() => describe(attempt))
      void decoded.then((result) => {
        attempt.work?.done()
        if (attempt.state === 'running') use(attempt, result)
      })
    }
  }

  function use(attempt: Attempt, decoded: Decoded): void {
    // No handler has been called yet, and none may be any more: the record is its next owner's.
    if (attempt.cutShort || attempt.lane.closed || options.stopping()) end(attempt, AGAIN)
    else if (attempt.timedOut) end(attempt, timeoutOf(attempt))
    else if (decoded.ok) {
      attempt.value = decoded.value
      callHandler(attempt)
    } else end(attempt, { kind: 'failed', error: decoded.error })
  }

  /** The handler has returned. Gives the next attempt for this frame where nothing at all is out of the ordinary. */
  function nextAfter(attempt: Attempt): Attempt | undefined {
    const ordinary =
      attempt.state === 'running' &&
      !attempt.timedOut &&
      !attempt.cutShort &&
      attempt.sends === undefined &&
      attempt.joiners === undefined &&
      attempt.work === undefined &&
      attempt.lane.heldBy === undefined &&
      !attempt.lane.closed
    if (!ordinary) {
      settled(attempt, OK)
      return undefined
    }
    attempt.triesEnded++
    attempt.state = 'ended'
    reports.tried(attempt, OK, 'ok')
    const entry = options.succeeded(attempt)
    if (entry === undefined) {
      watchdog.remove(attempt)
      return undefined
    }
    const next = begin(attempt.lane, entry)
    watchdog.replace(attempt, next, startTime())
    return next
  }

  function callHandler(attempt: Attempt): void {
    attempt.called = true
    const payload = payloadOf(attempt)
    const context = new Context(attempt, options.logger)
    if (clock.track === undefined) {
      void call!(attempt, payload, context)
      return
    }
    attempt.work = clock.track(() => describe(attempt))
    attempt.work.run(() => void call!(attempt, payload, context))
  }

  function payloadOf(attempt: Attempt): EachMessage {
    const { lane, entry } = attempt
    const pause = (): (() => void) => pauseLane(attempt, emitter, options.pauseChanged)
    const { opened, message } = entry
    if (opened === undefined) {
      // Its own: a handler may put the parsed value in place of the bytes, and the copy of a failed record is made of those.
      const own = { ...message, headers: copyHeaders(message.headers) } as HandlerMessage
      return { topic: lane.topic, partition: lane.partition, message: own, heartbeat, pause }
    }
    // Ids made from place and time must hold at every attempt, so the handler sees those of the first delivery.
    const { topic, partition, offset, timestamp } = opened.original
    const headers = toMessageHeaders(opened.headers) as HandlerMessage['headers']
    return {
      topic,
      partition,
      message: { ...message, offset: offset.toString(), timestamp: timestamp.toString(), headers } as HandlerMessage,
      heartbeat,
      pause,
    }
  }

  function settled(attempt: Attempt, outcome: Outcome): void {
    attempt.work?.done()
    attempt.triesEnded++
    if (attempt.state !== 'running') {
      reports.late(attempt, outcome.kind === 'ok' ? 'ok' : 'failed')
      return
    }
    if (attempt.cutShort && (attempt.signalSeen || outcome.kind === 'failed')) end(attempt, AGAIN)
    else if (attempt.timedOut) end(attempt, timeoutOf(attempt))
    else if (outcome.kind === 'failed' && attempt.pauses > 0) end(attempt, AGAIN)
    else if (outcome.kind === 'failed' && mayTryAgainNow(attempt, outcome.error)) tryAgainSoon(attempt, outcome.error)
    else end(attempt, outcome)
  }

  function mayTryAgainNow(attempt: Attempt, error: unknown): boolean {
    if (attempt.tryInAttempt > immediate.tries || options.stopping() || attempt.lane.closed) return false
    if (clock.monotonic() + immediate.delayMs >= attempt.deadlineAt) return false
    const verdict = options.classifier(error, classifyContext(attempt.lane, attempt.entry, attempt.number, maxAttempts))
    // Somebody who asks for a longer wait is not served by a short one.
    return verdict.kind === 'retry' && (verdict.after ?? 0) <= immediate.delayMs
  }

  function tryAgainSoon(attempt: Attempt, error: unknown): void {
    reports.tried(attempt, { kind: 'failed', error }, 'again')
    attempt.sends = undefined
    attempt.betweenTries = clock.after(immediate.delayMs, () => {
      if (attempt.timedOut || options.stopping() || attempt.lane.closed) {
        end(attempt, attempt.timedOut ? timeoutOf(attempt) : { kind: 'failed', error })
        return
      }
      attempt.tryInAttempt++
      callHandler(attempt)
    })
  }

  function end(attempt: Attempt, outcome: Outcome): void {
    attempt.state = 'ended'
    finish(attempt, outcome)
  }

  function abandon(attempt: Attempt, during: 'handler-timeout' | 'shutdown'): void {
    attempt.state = 'abandoned'
    attempt.work?.done()
    reports.abandoned(attempt, during)
    // At a shutdown nothing was decided about the record: it is left, uncommitted, to the next owner.
    finish(attempt, during === 'shutdown' ? AGAIN : timeoutOf(attempt))
  }

  function finish(attempt: Attempt, outcome: Outcome): void {
    watchdog.remove(attempt)
    attempt.betweenTries?.cancel()
    reports.ended(attempt, outcome)
    options.ended(attempt, outcome)
  }

  return { watchdog, start }
}

/** What is told of attempts while they run and as they end. */
export function createReports(emitter: Emitter, clock: Clock) {
  function tried(attempt: Attempt, outcome: Outcome, as: 'ok' | 'again'): void {
    if (!attempt.called || !emitter.active.attempt) return
    emitter.emit('attempt', {
      ...attemptFields(attempt, clock),
      outcome: as,
      ...(outcome.kind === 'failed' && { errorClass: describeError(outcome.error, { stackBytes: 0 }).name }),
    })
  }

  return {
    tried,
    ended(attempt: Attempt, outcome: Outcome): void {
      // A failure and a time-out are told once it is known where the record goes.
      if (outcome.kind === 'ok' || outcome.kind === 'again') tried(attempt, outcome, outcome.kind)
    },
    late(attempt: Attempt, outcome: 'ok' | 'failed'): void {
      emitter.emit('late', { ...placeOf(attempt), outcome })
    },
    abandoned(attempt: Attempt, during: 'handler-timeout' | 'shutdown'): void {
      const runningMs = Math.round(clock.monotonic() - attempt.startedAt)
      emitter.emit('abandoned', { ...placeOf(attempt), attempt: attempt.number, runningMs, during })
    },
  }
}

export function placeOf({ lane, entry }: Pick<Attempt, 'lane' | 'entry'>): At & { tier: string } {
  return { tier: lane.tier, topic: lane.topic, partition: lane.partition, offset: entry.offset }
}

/** What every `attempt` event tells. */
export function attemptFields(attempt: Attempt, clock: Clock) {
  const { entry } = attempt
  const durationMs = clock.monotonic() - attempt.startedAt
  const latenessMs = startedLate(attempt, clock)
  const { batchSize } = attempt
  return {
    ...placeOf(attempt),
    originalTopic: entry.opened?.main ?? attempt.lane.topic,
    attempt: attempt.number,
    tryInAttempt: attempt.tryInAttempt,
    durationMs,
    ...(latenessMs !== undefined && { latenessMs }),
    ...(batchSize !== undefined && { batch: batchSize }),
  }
}

/** How long after its due time it began, ms; undefined on a main topic. */
export function startedLate({ entry, startedAt }: Attempt, clock: Clock): number | undefined {
  const dueAt = entry.opened?.dueAt
  return dueAt === undefined
    ? undefined
    : Math.max(0, Math.round(clock.now() - (clock.monotonic() - startedAt) - dueAt))
}

export function classifyContext(lane: Lane, entry: Entry, attempt: number, maxAttempts: number) {
  const { opened, message } = entry
  return {
    topic: opened?.original.topic ?? lane.topic,
    partition: opened?.original.partition ?? lane.partition,
    offset: opened?.original.offset.toString() ?? entry.offset,
    key: message.key,
    attempt,
    maxAttempts,
    ...(opened?.firstFailedAt !== undefined && { firstFailedAt: opened.firstFailedAt }),
  }
}

function timeoutOf(attempt: Attempt): Outcome {
  return { kind: 'timeout', error: attempt.signal.reason }
}

function describe({ lane, entry, number }: Attempt): string {
  return `${lane.topic}/${lane.partition}@${entry.offset} (attempt ${number})`
}
