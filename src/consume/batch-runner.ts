/**
 * Calls the batch handler and says of each record how it ended. Where a record goes afterwards is for process-record.ts.
 *
 * open -> add (each record; its value is decoded) -> run: those that could be decoded are given to the handler
 *   - what cannot be decoded ends by itself, and the handler never sees it.
 *   - a record that the handler named has failed with its own error, any other with what was thrown, if anything was.
 *   - time-out and shutdown come to every member by itself (see watchdog.ts), at the same time.
 *
 * Must never happen: a handler called for a record that is another's by now; a record of the batch that ends twice, or never;
 * a record counted as done where the handler named one that is not there.
 */
import type { Clock, Logger } from '../ports'
import type { BatchHandler, MessageBatch } from '../record'
import { BatchCall, BatchCallContext, BatchMember, messageOf } from './batch-call'
import type { Decoded } from './decode'
import { pauseLane } from './handler-pause'
import type { Entry, Lane, Outcome } from './lane'
import { AGAIN, OK, createReports, GRACE_MS, heartbeat, type AttemptRunner, type RunnerOptions } from './run-attempt'
import { Watchdog } from './watchdog'

export interface BatchRunnerOptions extends Pick<
  RunnerOptions,
  'handlerTimeoutMs' | 'maxAttempts' | 'emitter' | 'frameName' | 'ended' | 'pauseChanged' | 'stopping'
> {
  readonly handler: BatchHandler
  readonly clock: Clock
  readonly logger: Logger
}

export interface BatchRunner extends Pick<AttemptRunner, 'watchdog'> {
  open(lane: Lane): BatchCall
  /** The time-out counts from here. */
  add(call: BatchCall, entry: Entry, decoded: Decoded | Promise<Decoded> | undefined): void
  /** Nothing more is added: calls the handler, once all values are decoded. */
  run(call: BatchCall): void
}

export function createBatchRunner(options: BatchRunnerOptions): BatchRunner {
  const { handler, clock, emitter, maxAttempts } = options
  const watchdog = new Watchdog(clock, options.handlerTimeoutMs, GRACE_MS, abandon)
  const reports = createReports(emitter, clock)

  // A computed name survives minifiers: stop() finds itself called from inside a handler by it.
  const { [options.frameName]: call } = {
    [options.frameName]: async (batch: BatchCall, payload: MessageBatch, context: BatchCallContext): Promise<void> => {
      try {
        await handler(payload, context)
      } catch (error) {
        settled(batch, { error })
        return
      }
      settled(batch, undefined)
    },
  } as Record<string, (batch: BatchCall, payload: MessageBatch, context: BatchCallContext) => Promise<void>>

  function add(batch: BatchCall, entry: Entry, decoded: Decoded | Promise<Decoded> | undefined): void {
    const member = new BatchMember(batch, entry, entry.opened?.attempt ?? 1, maxAttempts)
    watchdog.add(member, (batch.startedAt ??= clock.monotonic()))
    batch.members.push(member)
    if (decoded === undefined) return
    if ('then' in decoded) batch.pending.push(decoded.then((result) => use(member, result)))
    else use(member, decoded)
  }

  function use(member: BatchMember, decoded: Decoded): void {
    if (member.state !== 'running') return
    if (decoded.ok) {
      member.value = decoded.value
      return
    }
    // One that is somebody else's by now is left to them, in its turn.
    if (isLeft(member) || member.timedOut) return
    member.own = { error: decoded.error }
    end(member, { kind: 'failed', error: decoded.error })
  }

  function isLeft({ cutShort, lane }: BatchMember): boolean {
    return cutShort || lane.closed || options.stopping()
  }

  function run(batch: BatchCall): void {
    if (batch.pending.length === 0) {
      callHandler(batch)
      return
    }
    batch.work = clock.track?.(() => batch.describe())
    void Promise.all(batch.pending).then(() => {
      doneWith(batch)
      callHandler(batch)
    })
  }

  function callHandler(batch: BatchCall): void {
    for (const member of batch.members) {
      if (member.state !== 'running') continue
      if (isLeft(member)) end(member, AGAIN)
      else if (member.timedOut) end(member, timeoutOf(member))
    }
    batch.members = batch.members.filter(({ state }) => state === 'running')
    if (batch.members.length === 0) {
      batch.state = 'ended'
      return
    }
    batch.state = 'running'
    batch.messages = batch.members.map(messageOf)
    for (const member of batch.members) member.called = true
    const payload = payloadOf(batch)
    const context = new BatchCallContext(batch, maxAttempts, options.logger)
    if (clock.track === undefined) {
      void call!(batch, payload, context)
      return
    }
    batch.work = clock.track(() => batch.describe())
    batch.work.run(() => void call!(batch, payload, context))
  }

  function payloadOf(batch: BatchCall): MessageBatch {
    const { lane, members, messages } = batch
    return {
      topic: members[0]!.entry.opened?.main ?? lane.topic,
      partition: lane.partition,
      messages,
      heartbeat,
      pause: () => pauseLane(batch, emitter, options.pauseChanged),
    }
  }

  function settled(batch: BatchCall, thrown: { readonly error: unknown } | undefined): void {
    doneWith(batch)
    batch.state = 'ended'
    const failure = thrown ?? (batch.misuse && { error: batch.misuse })
    let isEcho = false
    for (const member of batch.members) {
      const outcome = outcomeOf(batch, member, failure)
      if (member.state !== 'running') {
        reports.late(member, outcome.kind === 'ok' ? 'ok' : 'failed')
        continue
      }
      if (outcome.kind !== 'ok' && member.own === undefined) {
        member.echo = isEcho
        isEcho = true
      }
      end(member, outcome)
    }
  }

  function outcomeOf(batch: BatchCall, member: BatchMember, failure: { readonly error: unknown } | undefined): Outcome {
    const { own } = member
    // What returns after its signal was aborted may have given up: it is not believed, as with one record.
    if (member.cutShort && (batch.signalSeen || failure !== undefined)) return AGAIN
    if (member.timedOut) return timeoutOf(member)
    if (own !== undefined) return { kind: 'failed', error: own.error }
    if (failure === undefined) return OK
    return batch.pauses > 0 ? AGAIN : { kind: 'failed', error: failure.error }
  }

  function end(member: BatchMember, outcome: Outcome): void {
    member.state = 'ended'
    finish(member, outcome)
  }

  function abandon(attempt: unknown, during: 'handler-timeout' | 'shutdown'): void {
    const member = attempt as BatchMember
    member.state = 'abandoned'
    doneWith(member.batch)
    reports.abandoned(member, during)
    // At a shutdown nothing was decided about the record: it is left, uncommitted, to the next owner.
    finish(member, during === 'shutdown' ? AGAIN : timeoutOf(member))
  }

  function finish(member: BatchMember, outcome: Outcome): void {
    watchdog.remove(member)
    reports.ended(member, outcome)
    options.ended(member, outcome)
  }

  return { watchdog, open: (lane) => new BatchCall(lane), add, run }
}

/** For a manual clock: nothing waits for it any more. */
function doneWith(batch: BatchCall): void {
  batch.work?.done()
  batch.work = undefined
}

function timeoutOf(member: BatchMember): Outcome {
  // What it was named for does not count any more: the call has failed as a whole.
  member.own = undefined
  return { kind: 'timeout', error: member.reason }
}
