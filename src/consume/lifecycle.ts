/**
 * Start and stop of one resilient consumer.
 *
 * States:  idle -> starting -> running -> stopping -> stopped
 *   - start() once: prepares, then joins every group. When it fails, everything is taken down before it rejects.
 *   - stop() at any moment; a second call gets the first one's promise. During a start it waits for the step under way,
 *     and a group that is joining for its join, up to the time-out; past that it says so and finishes in the background.
 *   - order: refuse new work -> let handlers and copies end, up to the time-out -> abort their signals, wait a grace,
 *     abandon -> commit what is settled -> leave and disconnect.
 *
 * Must never happen: a handler started after stop() was called; an unsettled offset committed; a timer, socket or group
 * member left behind once everything is done; a stop that waits for the handler it was called from.
 */
import { RetrylineError, isRetrylineError } from '../errors'
import { errorText, type Emitter } from '../observe'
import type { At } from '../observe'
import type { Clock, Logger } from '../ports'
import { parseDuration, type Duration } from '../topology'
import type { Group } from './group'
import { joinGroups } from './join-groups'
import { GRACE_MS } from './run-attempt'

/** How long the last commits may take once everything else is done, ms. */
const LAST_COMMITS_MS = 3_000
/** How long a stop that has used up its time still waits for the clients to leave in the foreground, ms. */
const LAST_GOODBYE_MS = 2_000

export interface StopOptions {
  /** In place of `shutdownTimeout`, for this stop. */
  readonly timeout?: Duration
}

export interface StopReport {
  /** Records whose handlers did not settle in time: not committed, so they come again, and perhaps still at work. */
  readonly abandoned: readonly At[]
  /** Whether everything has ended. False where the stop goes on in the background: see the log. */
  readonly finished: boolean
}

export interface Running {
  readonly groups: readonly Group[]
  /** Gives the group ids back to the process. */
  release(): void
}

export interface LifecycleOptions {
  readonly clock: Clock
  readonly emitter: Emitter
  readonly logger: Logger
  readonly shutdownTimeoutMs: number
  readonly sessionTimeoutMs: number
  readonly rebalanceTimeoutMs: number
  readonly frameName: string
  prepare(): Promise<Running>
  closeOutbox(): void
  disconnect(): Promise<void>
}

export interface Lifecycle {
  start(): Promise<void>
  stop(options?: StopOptions): Promise<StopReport>
  state(): 'idle' | 'starting' | 'running' | 'stopping' | 'stopped'
  groups(): readonly Group[]
  /** While stopping: something has ended that the stop may wait for. */
  progress(): void
}

const STOPPED_EARLY = 'stop() was called before the start had finished'

export function createLifecycle(options: LifecycleOptions): Lifecycle {
  const { clock, emitter, logger } = options
  let state: ReturnType<Lifecycle['state']> = 'idle'
  let running: Running | undefined
  let starting: Promise<void> | undefined
  let stopping: Promise<StopReport> | undefined
  let startCut: ((error: RetrylineError) => void) | undefined
  let drained: (() => void) | undefined
  let isPreparing = false

  function start(): Promise<void> {
    if (state !== 'idle') {
      const mend = state === 'stopped' ? 'make a new consumer' : 'call it once'
      return Promise.reject(new RetrylineError('RETRYLINE_STATE', `start(): the consumer is ${state} already; ${mend}`))
    }
    state = 'starting'
    starting = startUp()
    return starting.catch(async (error: unknown) => {
      await stop()
      throw asStartError(error)
    })
  }

  async function startUp(): Promise<void> {
    const startedAt = clock.monotonic()
    isPreparing = true
    const cut = new Promise<never>((_, reject) => {
      startCut = reject
    })
    cut.catch(() => undefined)
    const prepared = await options.prepare().finally(() => {
      isPreparing = false
    })
    running = prepared
    if (stopping !== undefined) throw new RetrylineError('RETRYLINE_STATE', STOPPED_EARLY)
    await joinGroups(prepared.groups, cut, options)
    if (stopping !== undefined) throw new RetrylineError('RETRYLINE_STATE', STOPPED_EARLY)
    state = 'running'
    const groups = prepared.groups.map(({ groupId }) => groupId)
    emitter.emit('started', { groups, durationMs: Math.round(clock.monotonic() - startedAt) })
  }

  function stop(stopOptions?: StopOptions): Promise<StopReport> {
    const fromHandler = calledFrom(options.frameName)
    stopping ??= stopNow(timeoutOf(stopOptions))
    if (!fromHandler) return stopping
    logger.info('stop() was called from a handler: it goes on when the handler has ended')
    return Promise.resolve({ abandoned: [], finished: false })
  }

  function timeoutOf(stopOptions: StopOptions | undefined): number {
    if (stopOptions?.timeout === undefined) return options.shutdownTimeoutMs
    if (stopOptions.timeout === 0) return 0
    const parsed = parseDuration(stopOptions.timeout, 'stop(): timeout')
    if (parsed.ok) return parsed.ms
    logger.error(`${parsed.problem}; shutdownTimeout is used`)
    return options.shutdownTimeoutMs
  }

  async function stopNow(timeoutMs: number): Promise<StopReport> {
    const startedAt = clock.monotonic()
    const wasIdle = state === 'idle'
    const left = (): number => Math.max(0, timeoutMs - (clock.monotonic() - startedAt))
    state = 'stopping'
    if (wasIdle) {
      state = 'stopped'
      return { abandoned: [], finished: true }
    }
    for (const group of groups()) group.refuse()
    startCut?.(new RetrylineError('RETRYLINE_STATE', STOPPED_EARLY))
    // A start that has not come to its groups yet is let to its next step, where it sees the stop.
    await within(starting!.then(nothing, nothing), left())
    for (const group of groups()) group.refuse()

    const abandoned = await drain(left())
    options.closeOutbox()
    const finishing = finish(abandoned, startedAt)
    // All that is left is to commit and to leave, which the clients do in a moment where the broker answers.
    if (await within(finishing, left() + LAST_COMMITS_MS + LAST_GOODBYE_MS)) return { abandoned, finished: true }
    logger.warn('stop() has used up its time; leaving the groups goes on in the background')
    return { abandoned, finished: false }
  }

  /** Waits for handlers and copies; past the time aborts, waits a grace, and abandons. */
  async function drain(timeoutMs: number): Promise<At[]> {
    const done = new Promise<void>((resolve) => {
      drained = resolve
    })
    progress()
    if (await within(done, timeoutMs)) return []
    const reason = new RetrylineError('RETRYLINE_STATE', 'the consumer is stopping, and its time is used up')
    for (const group of groups()) group.abort(reason)
    if (await within(done, GRACE_MS)) return []
    const abandoned: At[] = []
    const off = emitter.on('abandoned', ({ topic, partition, offset }) => {
      abandoned.push({ topic, partition, offset })
    })
    for (const group of groups()) group.abandon()
    off()
    return abandoned
  }

  async function finish(abandoned: readonly At[], startedAt: number): Promise<void> {
    const expireAt = clock.monotonic() + LAST_COMMITS_MS
    const expired = (): boolean => clock.monotonic() > expireAt
    await within(Promise.all(groups().map((group) => group.flush(expired))), LAST_COMMITS_MS)
    await Promise.all(groups().map((group) => group.close()))
    await options.disconnect()
    if (isPreparing) {
      // What it was about to do may have connected anew, or taken the group ids.
      await starting!.then(nothing, nothing)
      await options.disconnect()
    }
    running?.release()
    state = 'stopped'
    emitter.emit('stopped', { durationMs: Math.round(clock.monotonic() - startedAt), abandoned })
  }

  function groups(): readonly Group[] {
    return running?.groups ?? []
  }

  function progress(): void {
    if (drained !== undefined && groups().every((group) => group.drained)) drained()
  }

  /** Whether the work was done in time; it goes on either way. */
  async function within(work: Promise<unknown>, ms: number): Promise<boolean> {
    let cancel = nothing
    const late = new Promise<boolean>((resolve) => {
      const timer = clock.after(ms, () => resolve(false), 'deadline')
      cancel = () => timer.cancel()
    })
    const inTime = await Promise.race([work.then(() => true), late])
    cancel()
    return inTime
  }

  return { start, stop, state: () => state, groups, progress }
}

function nothing(): void {
  // Nothing to do.
}

/**
 * Whether the caller runs inside a handler of ours: V8 keeps the frames of the async functions that wait for the present
 * one, and the one that awaits handlers has a name of its own. AsyncLocalStorage would say the same, but costs every
 * promise of the process 0.4 µs on Node 20. Where it finds nothing, the shutdown's time-out ends the wait.
 */
function calledFrom(frameName: string): boolean {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 200
  const { stack } = new Error('where')
  Error.stackTraceLimit = limit
  return String(stack).includes(frameName)
}

function asStartError(error: unknown): unknown {
  if (isRetrylineError(error)) return error
  return new RetrylineError(
    'RETRYLINE_CONNECT',
    `the start failed (${errorText(error)}); check that the broker is there and lets this client read, write and join`,
    { cause: error },
  )
}
