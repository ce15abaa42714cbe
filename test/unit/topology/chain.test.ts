import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isRetrylineError } from '../../../src/errors'
import {
  buildTopology,
  formatDuration,
  parseTierTopic,
  type TopologyInput,
  topologyProblems,
} from '../../../src/topology'

const m = 60_000
const h = 60 * m
const input = (more: Partial<TopologyInput> = {}): TopologyInput => ({
  topics: ['orders'],
  groupId: 'billing',
  delays: [m, 10 * m, h],
  ...more,
})
const names = (more: Partial<TopologyInput> = {}) =>
  buildTopology(input(more))
    .allTopics()
    .map((role) => role.topic)

describe('the chain', () => {
  const topology = buildTopology(input({ topics: ['orders', 'refunds'] }))

  it('names a topic for each main topic and delay, and a group for each delay', () => {
    expect(topology.allTopics().map(({ topic, role, main }) => [topic, role, main])).toEqual([
      ['orders', 'main', 'orders'],
      ['refunds', 'main', 'refunds'],
      ['orders.retry.1m', 'retry', 'orders'],
      ['refunds.retry.1m', 'retry', 'refunds'],
      ['orders.retry.10m', 'retry', 'orders'],
      ['refunds.retry.10m', 'retry', 'refunds'],
      ['orders.retry.1h', 'retry', 'orders'],
      ['refunds.retry.1h', 'retry', 'refunds'],
      ['orders.dlq', 'dead-letter', 'orders'],
      ['refunds.dlq', 'dead-letter', 'refunds'],
    ])
    expect(topology.tiers.map((tier) => tier.groupId)).toEqual([
      'billing.retry.1m',
      'billing.retry.10m',
      'billing.retry.1h',
    ])
  })

  it('knows the tier of each attempt', () => {
    expect([0, 1, 2, 3, 4, 5, -1, 1.5, NaN].map((attempt) => topology.tierOfAttempt(attempt)?.name)).toEqual([
      undefined,
      undefined,
      '1m',
      '10m',
      '1h',
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    expect(topology.maxAttempts).toBe(4)
  })

  it('knows whose a retry topic is', () => {
    expect(topology.origin('refunds.retry.10m')).toEqual({ main: 'refunds', tier: topology.tiers[1] })
    expect(topology.origin('refunds')).toBeUndefined()
    expect(topology.origin('refunds.dlq')).toBeUndefined()
    expect(topology.origin('refunds.retry.5m')).toBeUndefined()
    expect(topology.roleOf('refunds.dlq')?.role).toBe('dead-letter')
  })

  it('gives retry and dead letter topics, and throws for what is not its own', () => {
    const tier = topology.tiers[0]!
    expect(topology.retryTopic('orders', tier)).toBe('orders.retry.1m')
    expect(topology.deadLetterTopic('orders')).toBe('orders.dlq')
    expect(() => topology.retryTopic('other', tier)).toThrow("'other' has no tier 1m")
    expect(() => topology.deadLetterTopic('orders.retry.1m')).toThrow('not a topic of this consumer')
  })

  it('is frozen', () => {
    expect(
      [topology, topology.tiers, topology.tiers[0], topology.topics, topology.allTopics()].every(Object.isFrozen),
    ).toBe(true)
  })

  it('lets equal delays share a tier', () => {
    const shared = buildTopology(input({ delays: [m, 10 * m, 10 * m, m] }))
    expect(shared.tiers.map(({ name, firstAttempt, lastAttempt }) => [name, firstAttempt, lastAttempt])).toEqual([
      ['1m', 2, 5],
      ['10m', 3, 4],
    ])
    expect([2, 3, 4, 5].map((attempt) => shared.tierOfAttempt(attempt)?.name)).toEqual(['1m', '10m', '10m', '1m'])
  })

  it('R44: has one attempt and no tier where the schedule is empty', () => {
    const none = buildTopology(input({ delays: [] }))
    expect([none.maxAttempts, none.tiers, none.tierOfAttempt(2), none.tierForDelay(0, 2)]).toEqual([
      1,
      [],
      undefined,
      undefined,
    ])
  })
})

describe('tierForDelay', () => {
  const topology = buildTopology(input())

  it.each([
    [0, 2, '1m'],
    [m, 2, '1m'],
    [m + 1, 2, '10m'],
    [10 * m, 2, '10m'],
    [11 * m, 2, '1h'],
    [5 * h, 2, '1h'],
    [0, 3, '10m'],
    [11 * m, 3, '1h'],
    [5 * h, 4, '1h'],
    [0, 5, undefined],
    [NaN, 2, '1m'],
  ])('at least %d ms for attempt %d: %s', (after, attempt, name) => {
    expect(topology.tierForDelay(after, attempt)?.name).toBe(name)
  })

  it('keeps the own tier of the attempt where that is long enough, also where a later one is shorter', () => {
    const falling = buildTopology(input({ delays: [h, 10 * m, m] }))
    expect(falling.tierForDelay(m, 2)?.name).toBe('1h')
    expect(falling.tierForDelay(30 * m, 3)?.name).toBe('10m')
  })
})

describe('former tiers', () => {
  it('are read after the others, and never chosen', () => {
    const topology = buildTopology(input({ formerTiers: [{ delayMs: 2 * h }, { delayMs: 30_000 }, { delayMs: m }] }))
    expect(
      topology.tiers.map(({ name, former, firstAttempt, lastAttempt }) => [name, former, firstAttempt, lastAttempt]),
    ).toEqual([
      ['1m', false, 2, 2],
      ['10m', false, 3, 3],
      ['1h', false, 4, 4],
      ['30s', true, 2, 4],
      ['2h', true, 2, 4],
    ])
    expect(topology.tierForDelay(2 * h, 2)?.name).toBe('1h')
    expect(topology.origin('orders.retry.30s')?.tier.groupId).toBe('billing.retry.30s')
  })

  it('may be there for some main topics only', () => {
    const topics = ['orders', 'refunds']
    const former = [
      { delayMs: 5, topics: ['refunds', 'gone'] },
      { delayMs: 6, topics: ['gone'] },
    ]
    const topology = buildTopology(input({ topics, delays: [], formerTiers: former }))
    expect(topology.tiers.map((tier) => [...tier.topics])).toEqual([[['refunds', 'refunds.retry.5ms']]])
  })

  it('are found by name, canonical ones only', () => {
    const parse = (name: string) => parseTierTopic(name, 'orders', 'topic', 'billing')
    expect(['orders.retry.5m', 'orders.retry.90s'].map(parse)).toEqual([5 * m, 90_000])
    const others = ['orders.retry.60s', 'orders.retry.', 'orders.retry.x', 'orders.dlq', 'orders', 'my.orders.retry.5m']
    expect(others.map(parse)).toEqual(Array(6).fill(undefined))
    expect(parse('orders.retry.1m.retry.5m')).toBeUndefined()
    expect(parseTierTopic('orders.billing.retry.5m', 'orders', 'group', 'billing')).toBe(5 * m)
    expect(parseTierTopic('orders.other.retry.5m', 'orders', 'group', 'billing')).toBeUndefined()
    const custom = { retry: () => 'r', deadLetter: () => 'd' }
    expect(parseTierTopic('orders.retry.5m', 'orders', custom, 'billing')).toBeUndefined()
  })

  it('have the names that the same delays had in the schedule', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 365 * 24 * 3600 }),
        fc.constantFrom('topic', 'group'),
        (seconds, naming) => {
          const { tiers } = buildTopology(input({ delays: [seconds * 1000], naming }))
          const name = tiers[0]?.topics.get('orders') ?? ''
          expect(parseTierTopic(name, 'orders', naming, 'billing')).toBe(seconds * 1000)
          expect(name.endsWith(`retry.${formatDuration(seconds * 1000)}`)).toBe(true)
        },
      ),
    )
  })
})

describe('naming', () => {
  it('may have the group in the name', () => {
    expect(names({ delays: [m], naming: 'group' })).toEqual(['orders', 'orders.billing.retry.1m', 'orders.billing.dlq'])
  })

  it('may be free', () => {
    const naming = {
      retry: (topic: string, delay: string, group: string) => `retry-${group}-${topic}-${delay}`,
      deadLetter: (topic: string, group: string) => `dead-${group}-${topic}`,
    }
    expect(names({ delays: [60_000], naming })).toEqual(['orders', 'retry-billing-orders-1m', 'dead-billing-orders'])
  })

  const problem = (more: Partial<TopologyInput>) => topologyProblems(input({ delays: [m], ...more }))

  it('P13: refuses names that are not legal, with the topic they are for', () => {
    expect(problem({ topics: ['a b'] })[0]).toMatch(/^main topic: 'a b' is not a legal topic name; Kafka takes letters/)
    expect(problem({ topics: ['..'] })).toHaveLength(1)
    expect(problem({ topics: [''] })).toHaveLength(1)
    expect(problem({ topics: ['__consumer_offsets'] })).toEqual([
      "main topic: '__consumer_offsets' is one of Kafka's own topics; name another",
    ])
    expect(problem({ topics: ['x'.repeat(249)] })[0]).toMatch(/^retry topic 1m of .* is 258 characters long/)
    expect(problem({ naming: 'group', groupId: 'a b' })).toHaveLength(2)
    expect(problem({ topics: [5 as never] })[0]).toBe('main topic: 5 is not text; give the name of a topic')
  })

  it('P13: refuses names that collide, as Kafka would', () => {
    expect(problem({ topics: ['orders', 'orders'] })[0]).toBe(
      "main topic: 'orders' is the name of the main topic too; each needs a topic of its own",
    )
    expect(problem({ topics: ['orders', 'orders.dlq'] })[0]).toBe(
      "dead letter topic of 'orders': 'orders.dlq' is the name of the main topic too; each needs a topic of its own",
    )
    expect(problem({ topics: ['a.b', 'a_b'] })[0]).toBe(
      "main topic: 'a_b' collides with 'a.b' (main topic); Kafka does not tell '.' from '_' and refuses one of them",
    )
    expect(problem({ naming: { retry: () => 'same', deadLetter: () => 'same' } })).toHaveLength(1)
    expect(problem({ naming: { retry: (topic) => topic, deadLetter: () => 'dead' } })).toHaveLength(1)
  })

  it('P13: contains what a naming function throws or returns', () => {
    const boom = () => {
      throw new Error('boom')
    }
    expect(problem({ naming: { retry: boom, deadLetter: () => 'd' } })[0]).toMatch(
      /^naming: your function threw \(Error: boom\)/,
    )
    expect(problem({ naming: { retry: () => undefined as never, deadLetter: () => 'd' } })[0]).toMatch(
      /^retry topic 1m of/,
    )
  })
})

describe('problems of the input', () => {
  it.each([
    [{ topics: [] }, /^topic: there is none/],
    [{ groupId: '' }, /^groupId: '' is not a name/],
    [{ groupId: 'ä'.repeat(128) }, /^groupId: 256 bytes are too long; give at most 255/],
    [{ formerGroupIds: ['x', ''] }, /^formerGroupIds\[1\]: '' is not a name/],
    [{ jitter: 2 }, /^jitter: 2 is not a share/],
    [{ delays: [0] }, /^delay: 0 is not a duration/],
    [{ deadlineMs: NaN }, /^delay: NaN is not a duration/],
    [{ formerTiers: [{ delayMs: -1 }] }, /^delay: -1 is not a duration/],
  ])('P13: %j', (more, pattern) => {
    expect(topologyProblems(input(more)).join('\n')).toMatch(pattern)
  })

  it('are thrown all together', () => {
    let thrown: unknown
    try {
      buildTopology(input({ topics: [], groupId: '', jitter: -1 }))
    } catch (error) {
      thrown = error
    }
    expect(isRetrylineError(thrown, 'RETRYLINE_CONFIG') && thrown.problems).toHaveLength(3)
  })
})
