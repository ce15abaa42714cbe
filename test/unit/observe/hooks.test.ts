import { describe, expect, test } from 'vitest'
import { consoleHooks, createEmitter, memoryHooks } from '../../../src/observe'
import type { Emitter, Fields, MetricHooks } from '../../../src/observe'
import { silentLogger, systemClock } from '../../../src/ports'

const place = { topic: 'orders', partition: 1, offset: '42' }
const attempt: Fields<'attempt'> = {
  ...place,
  tier: 'main',
  originalTopic: 'orders',
  attempt: 1,
  tryInAttempt: 1,
  outcome: 'ok',
  durationMs: 5,
}
const dead: Fields<'deadLettered'> = {
  ...place,
  tier: '1m',
  to: 'orders.dlq',
  attempt: 3,
  reason: 'exhausted',
  because: 'x',
  error: 'E',
}

const emitterOf = (hooks: MetricHooks, groupId = 'billing'): Emitter =>
  createEmitter({ groupId, hooks: [hooks], logger: silentLogger })

describe('memoryHooks', () => {
  test('counts, and keeps the latest of each type in order', () => {
    const memory = memoryHooks({ keep: 3 })
    const emitter = emitterOf(memory)
    for (let i = 1; i <= 5; i++) {
      emitter.emit('attempt', { ...attempt, offset: String(i) })
      if (i === 2) emitter.emit('restarted', { tier: 'main' })
    }
    expect(memory.counts).toMatchObject({ attempt: 5, restarted: 1, problem: 0 })
    expect(memory.events('attempt').map(({ offset }) => offset)).toEqual(['3', '4', '5'])
    expect(memory.events().map(({ type }) => type)).toEqual(['restarted', 'attempt', 'attempt', 'attempt'])
    memory.reset()
    expect(memory.counts.attempt).toBe(0)
    expect(memory.events()).toEqual([])
    emitter.emit('attempt', attempt)
    expect(memory.events('attempt')).toHaveLength(1)
  })
})

describe('consoleHooks', () => {
  function make(every?: string | number): { hooks: MetricHooks; lines: string[]; clock: { time: number } } {
    const lines: string[] = []
    const clock = { ...systemClock, time: 0, monotonic: (): number => clock.time }
    const hooks = consoleHooks({ ...(every !== undefined && { every }), write: (line) => void lines.push(line), clock })
    return { hooks, lines, clock }
  }

  test('sums up by group, at the first event after its time', () => {
    const { hooks, lines, clock } = make()
    const billing = emitterOf(hooks)
    const mail = emitterOf(hooks, 'mail')
    for (let i = 0; i < 30; i++) billing.emit('attempt', attempt)
    billing.emit('attempt', { ...attempt, outcome: 'retry', latenessMs: 4 })
    mail.emit('attempt', attempt)
    clock.time = 9_999
    billing.emit('attempt', { ...attempt, latenessMs: 8 })
    expect(lines).toEqual([])
    clock.time = 10_000
    billing.emit('retried', { ...place, tier: 'main', to: 'x', attempt: 2, dueAt: 0, because: 'x', error: 'E' })
    expect(lines).toEqual([
      'retryline billing, last 10s: 31 handled (3.1/s), 1 failed, 1 to retry, 0 dead letters,' +
        ' retries late by 6 ms on average, 8 ms at most',
    ])
    clock.time = 20_000
    mail.emit('stopped', { durationMs: 1, abandoned: [] })
    expect(lines[1]).toBe('retryline mail, last 20s: 1 handled (0.1/s), 0 failed, 0 to retry, 0 dead letters')
  })

  test('tells at once what a person should know; an idle group makes no line', () => {
    const { hooks, lines, clock } = make(1000)
    const emitter = emitterOf(hooks)
    emitter.emit('crashed', { tier: 'main', error: 'Error: dead', restarting: true })
    emitter.emit('publishFailed', { records: 1, topics: ['a'], error: 'Error: no', tries: 1, retryInMs: 100 })
    emitter.emit('abandoned', { ...place, tier: 'main', attempt: 1, runningMs: 5, during: 'shutdown' })
    clock.time = 5000
    emitter.emit('restarted', { tier: 'main' })
    expect(lines).toHaveLength(3)
    emitter.emit('deadLettered', dead)
    expect(lines[3]).toBe(
      'retryline billing: dead letter after 3 attempts, exhausted: orders/1@42 to orders.dlq (x; E)',
    )
  })

  test('P13: a bad interval is refused', () => {
    expect(() => make('10')).toThrow(/consoleHooks\.every: '10' is not a duration/)
  })

  test('says at once that everything stands still, what waits for a dependency, and that it goes on', () => {
    const { hooks, lines } = make()
    const emitter = emitterOf(hooks)
    emitter.emit('halted', { deadLetters: 20, of: 20, withinMs: 60_000 })
    emitter.emit('held', { dependency: 'payments', because: 'x', failures: 5 })
    emitter.emit('released', { dependency: 'payments', heldMs: 5, lanes: 2, probes: 1 })
    emitter.emit('released', { dependency: 'payments', heldMs: 5, lanes: 0, probes: 0 })
    const wanted = ['nothing is handled any more', "'payments' is down", 'is back after 5 ms', 'went to others']
    expect(lines).toEqual(wanted.map((part) => expect.stringContaining(part)))
  })
})
