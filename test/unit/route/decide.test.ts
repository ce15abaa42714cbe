import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decideRoute, type Decision, type RouteInput, toDeadLetter } from '../../../src/route'
import { HOUR, MINUTE, NOW, SECOND, topologies, topologyOf } from './given'

const decide = (more: Partial<RouteInput> = {}): Decision =>
  decideRoute({
    main: 'orders',
    attempt: 1,
    firstFailedAt: undefined,
    verdict: { kind: 'retry' },
    topology: topologyOf(),
    now: NOW,
    random: () => 0.5,
    ...more,
  })
const where = (decision: Decision) =>
  decision.kind === 'retry'
    ? [decision.topic, decision.attempt, decision.dueAt - NOW]
    : [decision.topic, decision.reason]

describe('decideRoute', () => {
  // The due time is that of the tier that the record goes to, not of the one it comes from.
  it.each([
    [1, ['orders.retry.1m', 2, MINUTE]],
    [2, ['orders.retry.10m', 3, 10 * MINUTE]],
    [3, ['orders.retry.1h', 4, HOUR]],
    [4, ['orders.dlq', 'exhausted']],
  ])('R70: after attempt %d', (attempt, expected) => {
    expect(where(decide({ attempt }))).toEqual(expected)
  })

  it('R44: goes straight to the dead letter topic where the schedule is empty', () => {
    expect(decide({ topology: topologyOf({ delays: [] }) })).toEqual({
      kind: 'dead-letter',
      topic: 'orders.dlq',
      reason: 'exhausted',
      attempt: 1,
    })
  })

  it('goes to the dead letter topic of its own main topic', () => {
    const verdict = { kind: 'dead-letter', reason: 'unclassified' } as const
    expect(where(decide({ main: 'refunds', verdict }))).toEqual(['refunds.dlq', 'unclassified'])
  })

  it.each(['non-retryable', 'unclassified', 'undecodable', 'timeout'] as const)('keeps the reason %s', (reason) => {
    expect(decide({ verdict: { kind: 'dead-letter', reason }, attempt: 2 })).toMatchObject({ reason, attempt: 2 })
  })

  it('names a time-out on the last attempt only', () => {
    expect(where(decide({ attempt: 4, timedOut: true }))).toEqual(['orders.dlq', 'timeout'])
    expect(decide({ attempt: 3, timedOut: true }).kind).toBe('retry')
  })

  it.each([
    [1, 30 * SECOND, ['orders.retry.1m', 2, MINUTE]],
    [1, 2 * MINUTE, ['orders.retry.10m', 2, 10 * MINUTE]],
    [1, 11 * MINUTE, ['orders.retry.1h', 2, HOUR]],
    [1, 2 * HOUR, ['orders.retry.1h', 2, HOUR]],
    [2, 30 * SECOND, ['orders.retry.10m', 3, 10 * MINUTE]],
    [4, 30 * SECOND, ['orders.dlq', 'exhausted']],
  ])('after attempt %d, asked to wait %d ms', (attempt, after, expected) => {
    expect(where(decide({ attempt, verdict: { kind: 'retry', after } }))).toEqual(expected)
  })

  it('counts the next delay against the deadline, from the first failure', () => {
    const topology = topologyOf({ deadlineMs: 15 * MINUTE })
    const decision = (attempt: number, firstFailedAt: number) => where(decide({ topology, attempt, firstFailedAt }))
    expect(decision(2, NOW - 5 * MINUTE)).toEqual(['orders.retry.10m', 3, 10 * MINUTE])
    expect(decision(2, NOW - 5 * MINUTE - 1)).toEqual(['orders.dlq', 'deadline'])
    expect(decision(4, NOW - HOUR)).toEqual(['orders.dlq', 'exhausted'])
    expect(where(decide({ topology: topologyOf({ deadlineMs: SECOND }) }))).toEqual(['orders.dlq', 'deadline'])
  })

  it('makes a delay longer, never shorter', () => {
    const topology = topologyOf({ jitter: 0.5 })
    const dueAfter = (random: number) => where(decide({ topology, random: () => random }))[2]
    expect([0, 0.5, 0.999999].map(dueAfter)).toEqual([MINUTE, 75 * SECOND, 90 * SECOND])
  })

  it('P4: ends at the dead letter topic within the attempts, for any topology, verdicts and chance', () => {
    const verdicts = fc.array(fc.record({ after: fc.double(), random: fc.double({ min: 0, max: 0.999, noNaN: true }) }))
    fc.assert(
      fc.property(topologies, verdicts, fc.integer({ min: 1, max: 20 }), (topology, list, first) => {
        let attempt = first
        let now = NOW
        for (let steps = 0; ; steps++) {
          const { after, random } = list[steps] ?? { after: 0, random: 0.5 }
          const input = { topology, attempt, now, firstFailedAt: NOW, random: () => random }
          const decision = decide({ ...input, verdict: { kind: 'retry', after } })
          if (decision.kind === 'dead-letter') break
          expect(decision.attempt).toBe(attempt + 1)
          expect(decision.attempt).toBeLessThanOrEqual(topology.maxAttempts)
          expect(decision.tier.former).toBe(false)
          expect(decision.dueAt).toBeGreaterThanOrEqual(now + decision.tier.delayMs)
          expect(decision.dueAt).toBeLessThanOrEqual(now + Math.ceil(decision.tier.delayMs * (1 + topology.jitter)))
          expect(topology.origin(decision.topic)).toEqual({ main: 'orders', tier: decision.tier })
          attempt = decision.attempt
          now = decision.dueAt
          expect(steps).toBeLessThan(topology.maxAttempts)
        }
      }),
    )
  })
})

it('toDeadLetter gives the reasons that no verdict gives', () => {
  expect(toDeadLetter({ main: 'refunds', attempt: 2, topology: topologyOf() }, 'crash-loop')).toEqual({
    kind: 'dead-letter',
    topic: 'refunds.dlq',
    reason: 'crash-loop',
    attempt: 2,
  })
})
