/**
 * Hands each event to the log, the hooks and the listeners, and contains whatever they do: an observer cannot break
 * the flow. What they throw becomes a `problem` event, at most a few in each window; what is thrown on a `problem` is
 * only logged, so that no storm feeds itself.
 */
import { RetrylineError } from '../errors'
import { systemClock } from '../ports'
import type { Clock, Logger } from '../ports'
import { errorText } from './error-text'
import { EVENT_TYPES } from './events'
import type { EventOf, EventType, Fields, MetricHooks, RetrylineEvent } from './events'
import { LOG_LINES } from './log-lines'
import type { LogLine } from './log-lines'
import { createRateLimit } from './rate'

/** Lines of one per-record kind that go out at their own level in each window; the rest go to `debug`. */
const LINES = 100
const PROBLEMS = 5
const WINDOW_MS = 10_000

export type Listener<E extends EventType> = (event: EventOf<E>) => unknown
export type AnyListener = (event: RetrylineEvent) => unknown

export interface Emitter {
  /**
   * Whether anybody (log included) sees events of this type. Read it before gathering fields on the hot path:
   * `if (emitter.active.attempt) emitter.emit('attempt', …)`. Kept up to date as listeners come and go.
   */
  readonly active: Readonly<Record<EventType, boolean>>
  has(type: EventType): boolean
  emit<E extends EventType>(type: E, fields: Fields<E>): void
  /** Adds a listener; `all` gets every event. The returned function takes it away again (more than once is fine). */
  on<E extends EventType>(type: E, listener: Listener<E>): () => void
  on(type: 'all', listener: AnyListener): () => void
}

export interface EmitterOptions {
  readonly groupId: string
  readonly hooks?: readonly MetricHooks[]
  readonly logger: Logger
  readonly clock?: Clock
  /** Told of every failure of a hook, listener or logger, rate limits apart. */
  readonly onProblem?: (where: string, error: unknown) => void
}

interface Call {
  readonly name: string
  readonly fn: (event: never) => unknown
}

export function createEmitter(options: EmitterOptions): Emitter {
  const { groupId, logger, onProblem } = options
  const clock = options.clock ?? systemClock
  const active = byType<boolean>(() => false)
  const calls = byType<readonly Call[]>((type) => hookCalls(type, options.hooks ?? []))
  const allowLine = createRateLimit(clock, LINES, WINDOW_MS)
  const allowProblem = createRateLimit(clock, PROBLEMS, WINDOW_MS)

  const refresh = (type: EventType): void => {
    active[type] = calls[type].length > 0 || type in LOG_LINES
  }
  EVENT_TYPES.forEach(refresh)

  const contained = (where: string, fn: () => unknown, report: (where: string, error: unknown) => void): void => {
    try {
      const result = fn()
      if (isThenable(result)) result.then(undefined, (error: unknown) => report(where, error))
    } catch (error) {
      report(where, error)
    }
  }

  const tellOwner = (where: string, error: unknown): void => {
    if (onProblem)
      contained(
        'onProblem',
        () => onProblem(where, error),
        () => undefined,
      )
  }

  const write = (level: 'debug' | 'info' | 'warn' | 'error', text: string, fields: Record<string, unknown>): void =>
    contained('logger', () => logger[level](text, fields), tellOwner)

  const failed = (type: EventType) => (where: string, error: unknown) => {
    tellOwner(where, error)
    const allowance = allowProblem(where)
    if (allowance === 'quiet') return
    const more =
      allowance === 'say-more-follow' ? ` (more of these in the next ${WINDOW_MS / 1000} s are not told)` : ''
    const fields = { where, error: errorText(error) + more }
    if (type === 'problem') write('error', `${where}: ${fields.error}`, { event: 'problem', groupId, ...fields })
    else emit('problem', fields)
  }

  const log = <E extends EventType>(line: LogLine<E>, event: EventOf<E>): void => {
    const { type, ...fields } = event
    const level = typeof line.level === 'function' ? line.level(event) : line.level
    const allowance = line.perRecord ? allowLine(type) : 'say'
    if (allowance === 'say-more-follow') {
      write(level, `${type}: more in the next ${WINDOW_MS / 1000} s go to level debug`, { event: type, groupId })
    }
    write(allowance === 'say' ? level : 'debug', line.text(event), { event: type, ...fields })
  }

  function emit<E extends EventType>(type: E, fields: Fields<E>): void {
    if (!active[type]) return
    const event = { type, groupId, ...fields } as EventOf<E>
    const line = LOG_LINES[type]
    if (line) contained('log line', () => log(line, event), tellOwner)
    // A list is replaced, never changed: a listener that is taken away during the loop does not disturb it.
    for (const { name, fn } of calls[type]) contained(name, () => fn(event as never), failed(type))
  }

  const on = (type: EventType | 'all', listener: (event: never) => unknown): (() => void) => {
    const types = type === 'all' ? EVENT_TYPES : [type]
    if (type !== 'all' && !EVENT_TYPES.includes(type)) {
      throw new RetrylineError(
        'RETRYLINE_STATE',
        `on(): there is no event '${String(type)}'; there are: ${EVENT_TYPES.join(', ')}, and all`,
      )
    }
    if (typeof listener !== 'function') {
      throw new RetrylineError('RETRYLINE_STATE', `on(): the listener of '${type}' is no function; give one`)
    }
    const call: Call = { name: `listener of ${type}`, fn: listener }
    const change = (next: (list: readonly Call[]) => readonly Call[]): void => {
      for (const each of types) {
        calls[each] = next(calls[each])
        refresh(each)
      }
    }
    change((list) => [...list, call])
    return () => change((list) => list.filter((other) => other !== call))
  }

  return { active, has: (type) => active[type], emit, on }
}

function byType<T>(make: (type: EventType) => T): Record<EventType, T> {
  return Object.fromEntries(EVENT_TYPES.map((type) => [type, make(type)])) as Record<EventType, T>
}

/** The calls of one event: for each hook the method of its name, then `all`. Read once, so getters run only here. */
function hookCalls(type: EventType, hooks: readonly MetricHooks[]): Call[] {
  return hooks.flatMap((hook) =>
    ([type, 'all'] as const).flatMap((name) => {
      const method = hook[name] as unknown
      if (typeof method !== 'function') return []
      return [{ name: `hook ${name}`, fn: (event: never): unknown => Reflect.apply(method, hook, [event]) }]
    }),
  )
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
