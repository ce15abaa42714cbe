import { describe, expect, expectTypeOf, test, vi } from 'vitest'
import { createEmitter, EVENT_TYPES, LOG_LINES, memoryHooks } from '../../../src/observe'
import type { Emitter, EventType, Fields, MetricHooks, RetrylineEvent } from '../../../src/observe'
import type { Clock, Logger } from '../../../src/ports'
import { systemClock } from '../../../src/ports'

interface Line {
  level: string
  message: string
  fields: Record<string, unknown> | undefined
}

function recordingLogger(): Logger & { lines: Line[] } {
  const lines: Line[] = []
  const at = (level: string) => (message: string, fields?: Record<string, unknown>) =>
    void lines.push({ level, message, fields })
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function stillClock(): Clock & { time: number } {
  const clock = { ...systemClock, time: 0, now: () => clock.time, monotonic: () => clock.time }
  return clock
}

const place = { topic: 'orders', partition: 1, offset: '42' }
const retried: Fields<'retried'> = {
  ...place,
  tier: 'main',
  to: 'orders.retry.1m',
  attempt: 2,
  dueAt: 0,
  because: 'x',
  error: 'E',
}
const attempt: Fields<'attempt'> = {
  ...place,
  tier: 'main',
  originalTopic: 'orders',
  attempt: 1,
  tryInAttempt: 1,
  outcome: 'ok',
  durationMs: 5,
}

/** One event of each type. */
const EVERY: { [E in EventType]: Fields<E> } = {
  attempt,
  retried,
  deadLettered: { ...place, tier: '1m', to: 'orders.dlq', attempt: 3, reason: 'exhausted', because: 'x', error: 'E' },
  skipped: { ...place, tier: '1m', why: 'other-group', group: 'other' },
  envelope: { ...place, tier: '1m', problems: ['x-attempt is not a number'] },
  published: { records: 1, topics: ['a'], durationMs: 1 },
  publishFailed: { records: 1, topics: ['a'], error: 'Error: no', tries: 1, retryInMs: 100 },
  committed: { tier: 'main', partitions: 1, durationMs: 1 },
  fenced: { tier: 'main', topic: 'orders', partition: 0 },
  commitFailed: { tier: 'main', partitions: 1, error: 'KafkaJSProtocolError: disk' },
  metadata: { ...place, tier: 'main', length: 7 },
  unclean: { ...place, tier: 'main', records: 16, suspects: 1 },
  crashLoop: { ...place, tier: 'main', deaths: 3 },
  rebalanced: { tier: 'main', assigned: 1, added: 1, removed: 0, kept: 0, dropped: 0 },
  reopened: { tier: 'main', topic: 'orders', partition: 0, ours: '1', broker: '2' },
  gone: { tier: 'main', topic: 'orders', partition: 0, from: '1', to: '2' },
  unreadable: { ...place, tier: 'main', error: 'Error: no codec', forMs: 0, againInMs: 5_000 },
  readable: { ...place, tier: 'main', forMs: 5_000 },
  late: { ...place, tier: 'main', outcome: 'ok' },
  abandoned: { ...place, tier: 'main', attempt: 1, runningMs: 5, during: 'shutdown' },
  lane: { tier: 'main', topic: 'orders', partition: 0, held: 1, running: 1, bytes: 10, full: true },
  crashed: { tier: 'main', error: 'Error: dead', restarting: true },
  restarted: { tier: 'main' },
  started: { groups: ['billing'], durationMs: 1 },
  stopped: { durationMs: 1, abandoned: [] },
  held: { dependency: 'payments', because: 'it is down', failures: 5 },
  released: { dependency: 'payments', heldMs: 5, lanes: 2, probes: 1 },
  halted: { deadLetters: 10, of: 12, withinMs: 60_000 },
  paused: { by: 'handler', topic: 'orders', partition: 1 },
  resumed: { by: 'user' },
  problem: { where: 'classify', error: 'Error: bad' },
}

function emitEvery(emitter: Emitter): void {
  for (const type of EVENT_TYPES) emitter.emit(type, EVERY[type])
}

function make(hooks: MetricHooks[] = []): {
  emitter: Emitter
  logger: ReturnType<typeof recordingLogger>
  clock: ReturnType<typeof stillClock>
  told: string[]
} {
  const logger = recordingLogger()
  const clock = stillClock()
  const told: string[] = []
  const emitter = createEmitter({
    groupId: 'billing',
    hooks,
    logger,
    clock,
    onProblem: (where) => void told.push(where),
  })
  return { emitter, logger, clock, told }
}

describe('who gets an event', () => {
  test('hooks by name, then all; then listeners; in order', () => {
    const seen: string[] = []
    const hook: MetricHooks = { attempt: (e) => seen.push(`named ${e.offset}`), all: (e) => seen.push(`all ${e.type}`) }
    const { emitter } = make([hook, { attempt: () => seen.push('second') }])
    emitter.on('attempt', (event) => {
      expectTypeOf(event.durationMs).toEqualTypeOf<number>()
      expect(event).toEqual({ type: 'attempt', groupId: 'billing', ...attempt })
      seen.push('listener')
    })
    emitter.on('all', (event) => seen.push(`listener of all ${event.type}`))
    emitter.emit('attempt', attempt)
    expect(seen).toEqual(['named 42', 'all attempt', 'second', 'listener', 'listener of all attempt'])
  })

  test('P13: an event that does not exist, or no function, is refused with what there is', () => {
    const { emitter } = make([])
    expect(() => emitter.on('deadletter' as never, () => undefined)).toThrow(
      /no event 'deadletter'; there are: .*deadLettered/,
    )
    expect(() => emitter.on('deadLettered', undefined as never)).toThrow(/no function/)
  })

  test('hooks keep their this', () => {
    class Counter {
      count = 0
      attempt(): void {
        this.count++
      }
    }
    const counter = new Counter()
    make([counter]).emitter.emit('attempt', attempt)
    expect(counter.count).toBe(1)
  })

  test('a listener can leave, also from inside a call, and more than once', () => {
    const { emitter } = make()
    const seen: number[] = []
    const off = emitter.on('attempt', () => {
      seen.push(1)
      off()
      off()
    })
    emitter.on('attempt', () => seen.push(2))
    emitter.emit('attempt', attempt)
    emitter.emit('attempt', attempt)
    expect(seen).toEqual([1, 2, 2])
  })

  test('active tells whether anybody listens, for types that are not logged', () => {
    const { emitter } = make()
    expect(emitter.active.attempt).toBe(false)
    expect(emitter.has('deadLettered')).toBe(true)
    const off = emitter.on('attempt', () => undefined)
    const offAll = emitter.on('all', () => undefined)
    off()
    expect(emitter.active.attempt).toBe(true)
    expect(emitter.active.lane).toBe(true)
    offAll()
    expect(emitter.active.attempt).toBe(false)
    expect(make([{ all: () => undefined }]).emitter.active.attempt).toBe(true)
    expect(make([{ lane: () => undefined }]).emitter.active).toMatchObject({ lane: true, attempt: false })
  })
})

describe('P12: observers cannot break the flow, and no failure is silent', () => {
  const error = new Error('hook is broken')
  const thrower = (): never => {
    throw error
  }

  test.each<[string, () => unknown]>([
    ['throws', thrower],
    ['rejects', () => Promise.reject(error)],
    ['gives a thenable that rejects', () => ({ then: (_ok: unknown, no: (e: unknown) => void) => no(error) })],
    ['gives a thenable that throws', () => ({ then: thrower })],
  ])('a hook that %s is a problem event, and the others are called', async (_how, hook) => {
    const memory = memoryHooks()
    const { emitter, logger, told } = make([{ attempt: hook }, memory])
    emitter.emit('attempt', attempt)
    await vi.waitFor(() => expect(memory.counts).toMatchObject({ attempt: 1, problem: 1 }))
    expect(memory.events('problem')[0]).toMatchObject({ where: 'hook attempt', error: 'Error: hook is broken' })
    expect(logger.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
      'warn hook attempt: Error: hook is broken',
    ])
    expect(told).toEqual(['hook attempt'])
  })

  test('a hook that breaks on everything, problems too, makes no storm', async () => {
    const { emitter, logger, clock, told } = make([{ all: thrower }, { problem: () => Promise.reject(error) as never }])
    for (let i = 0; i < 1000; i++) emitter.emit('attempt', attempt)
    await Promise.resolve()
    expect(logger.lines.length).toBeGreaterThan(0)
    expect(logger.lines.length).toBeLessThan(20)
    expect(logger.lines.some(({ message }) => message.includes('are not told'))).toBe(true)
    expect(told.length).toBeGreaterThanOrEqual(1000)
    const before = logger.lines.length
    clock.time = 10_000
    emitter.emit('attempt', attempt)
    expect(logger.lines.length).toBeGreaterThan(before)
  })

  test('a logger that throws, or an owner that does, is contained', () => {
    const logger = { debug: thrower, info: thrower, warn: thrower, error: thrower }
    const memory = memoryHooks()
    const emitter = createEmitter({ groupId: 'g', hooks: [memory, { problem: thrower }], logger, onProblem: thrower })
    emitEvery(emitter)
    expect(memory.counts.crashed).toBe(1)
  })

  test('a listener that emits is not lost in itself', () => {
    const { emitter } = make([{ paused: () => emitter.emit('paused', { by: 'user' }) }])
    expect(() => emitter.emit('paused', { by: 'user' })).not.toThrow()
  })

  test('every failure has a log line, an event and a hook', () => {
    const memory = memoryHooks()
    const heard: RetrylineEvent[] = []
    const { emitter, logger } = make([memory])
    emitter.on('all', (event) => heard.push(event))
    emitEvery(emitter)
    expect(heard.map(({ type }) => type)).toEqual(EVENT_TYPES)
    expect(memory.events()).toEqual(heard)
    const levels = Object.fromEntries(logger.lines.map(({ level, fields }) => [fields?.['event'], level]))
    expect(levels).toEqual({
      retried: 'info',
      deadLettered: 'warn',
      skipped: 'debug',
      envelope: 'warn',
      publishFailed: 'error',
      commitFailed: 'warn',
      fenced: 'warn',
      rebalanced: 'info',
      reopened: 'warn',
      gone: 'error',
      unreadable: 'error',
      readable: 'info',
      late: 'warn',
      metadata: 'warn',
      abandoned: 'error',
      crashed: 'error',
      unclean: 'warn',
      crashLoop: 'error',
      restarted: 'info',
      started: 'info',
      stopped: 'info',
      held: 'warn',
      released: 'info',
      halted: 'error',
      paused: 'debug',
      resumed: 'info',
      problem: 'warn',
    })
    expect(Object.keys(LOG_LINES)).toEqual(Object.keys(levels))
  })
})

describe('log lines', () => {
  test('say where and why, and carry the event as JSON-safe fields', () => {
    const { emitter, logger } = make()
    emitter.emit('deadLettered', EVERY.deadLettered)
    expect(logger.lines[0]).toEqual({
      level: 'warn',
      message: 'dead letter after 3 attempts, exhausted: orders/1@42 to orders.dlq (x; E)',
      fields: { event: 'deadLettered', groupId: 'billing', ...EVERY.deadLettered },
    })
    emitEvery(emitter)
    for (const { fields, message } of logger.lines) {
      expect(JSON.parse(JSON.stringify(fields))).toEqual(fields)
      expect(message).not.toMatch(/undefined|\[object|NaN/)
    }
  })

  test('tell a newcomer how an error that nobody knows is retried', () => {
    const { emitter, logger } = make()
    emitter.emit('deadLettered', { ...EVERY.deadLettered, reason: 'unclassified' })
    expect(logger.lines[0]?.message).toMatch(
      /, unclassified: .*; to have it tried again throw a RetryableError, .* or set unknownErrors: 'retry'$/,
    )
  })

  test('R71: waiting is no warning; a commit that a rebalance overtook is none either', () => {
    const { emitter, logger } = make()
    emitter.emit('retried', retried)
    emitter.emit('lane', EVERY.lane)
    emitter.emit('commitFailed', { ...EVERY.commitFailed, error: 'KafkaJSProtocolError: ILLEGAL_GENERATION' })
    emitter.emit('paused', EVERY.paused)
    expect(logger.lines.map(({ level }) => level)).toEqual(['info', 'info', 'debug'])
  })

  test('a stop that left something is a warning', () => {
    const { emitter, logger } = make()
    emitter.emit('stopped', { durationMs: 1, abandoned: [place] })
    expect(logger.lines[0]).toMatchObject({ level: 'warn', message: 'stopped in 1 ms, left uncommitted: orders/1@42' })
  })

  test('of a flood the first are told at their level, all of them at debug; dead letters are never held back', () => {
    const { emitter, logger, clock } = make()
    for (let i = 0; i < 1000; i++) {
      emitter.emit('retried', retried)
      emitter.emit('deadLettered', EVERY.deadLettered)
    }
    const count = (level: string): number => logger.lines.filter((line) => line.level === level).length
    expect({ info: count('info'), warn: count('warn'), debug: count('debug') }).toEqual({
      info: 101,
      warn: 1000,
      debug: 900,
    })
    clock.time = 10_000
    emitter.emit('retried', retried)
    expect(count('info')).toBe(102)
  })
})
