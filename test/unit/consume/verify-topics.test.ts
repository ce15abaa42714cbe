import { describe, expect, test } from 'vitest'
import { verifyTopics } from '../../../src/consume/verify-topics'
import type { VerifyOptions } from '../../../src/consume/verify-topics'
import { isRetrylineError } from '../../../src/errors'
import { systemClock } from '../../../src/ports'
import type { NewTopic, TopicAdmin, TopicSettings } from '../../../src/ports'
import { buildTopology } from '../../../src/topology'
import type { TopologyInput } from '../../../src/topology'

const DAY = 86_400_000
const BUDGET = 1000

interface FakeTopic extends TopicSettings {
  partitions: number
}

const good = (partitions = 3, over: Partial<FakeTopic> = {}): FakeTopic => ({
  partitions,
  cleanupPolicy: 'delete',
  retentionMs: 7 * DAY,
  maxMessageBytes: 5000,
  ...over,
})
const main = (over: Partial<FakeTopic> = {}): FakeTopic => good(3, { maxMessageBytes: 4000, ...over })

const forbidden = Object.assign(new Error('Not authorized to access topics'), { type: 'TOPIC_AUTHORIZATION_FAILED' })

/** A cluster of these topics; `overrides` replaces what the admin answers. */
function cluster(topics: Record<string, FakeTopic>, overrides: Partial<TopicAdmin> = {}) {
  const made: NewTopic[] = []
  const stored = new Map(Object.entries(topics))
  const pick = <T>(names: readonly string[], value: (topic: FakeTopic) => T): Map<string, T> =>
    new Map(names.flatMap((name) => (stored.has(name) ? [[name, value(stored.get(name) as FakeTopic)]] : [])))
  const admin = {
    partitions: (names: readonly string[]) => Promise.resolve(pick(names, ({ partitions }) => partitions)),
    settings: (names: readonly string[]) => Promise.resolve(pick<TopicSettings>(names, (topic) => topic)),
    createTopics: (wanted: readonly NewTopic[]) => {
      made.push(...wanted)
      for (const { topic, partitions } of wanted) stored.set(topic, good(partitions))
      return Promise.resolve()
    },
    ...overrides,
  } as Partial<TopicAdmin> as TopicAdmin
  return { admin, made, stored }
}

const ALL = { orders: main(), 'orders.retry.1m': good(), 'orders.dlq': good(1) }

interface Outcome {
  counts?: Map<string, number>
  problems: readonly string[]
  warnings: string[]
  message: string
  code: string
}

async function verify(
  admin: TopicAdmin,
  mode: VerifyOptions['mode'] = 'verify',
  input: Partial<TopologyInput> = {},
): Promise<Outcome> {
  const topology = buildTopology({ topics: ['orders'], groupId: 'billing', delays: [60_000], ...input })
  const warnings: string[] = []
  const warn = (problem: string): void => void warnings.push(problem)
  try {
    const options = { admin, topology, mode, warn, clock: systemClock, headerBudgetBytes: BUDGET }
    return { counts: await verifyTopics(options), problems: [], warnings, message: '', code: '' }
  } catch (error) {
    if (!isRetrylineError(error)) throw error
    for (const problem of error.problems) expect(error.message).toContain(problem)
    return { problems: error.problems, warnings, message: error.message, code: error.code }
  }
}

describe('P10: topics are explicit', () => {
  test('all as they must be: the partition counts, nothing said, nothing made', async () => {
    const { admin, made } = cluster(ALL)
    expect(await verify(admin)).toEqual({
      counts: new Map([
        ['orders', 3],
        ['orders.retry.1m', 3],
        ['orders.dlq', 1],
      ]),
      problems: [],
      warnings: [],
      message: '',
      code: '',
    })
    expect(made).toEqual([])
  })

  test('everything that is missing is told at once, each with its command', async () => {
    const { admin, made } = cluster({ orders: main() })
    const { problems, message, code } = await verify(admin)
    expect(code).toBe('RETRYLINE_TOPICS')
    expect(problems).toEqual([
      "orders.retry.1m (retry topic 1m of 'orders'): does not exist; make it:" +
        ' kafka-topics.sh --bootstrap-server "$KAFKA_BROKERS" --create --topic orders.retry.1m --partitions 3' +
        ' --config cleanup.policy=delete --config retention.ms=259260000 --config max.message.bytes=5000',
      "orders.dlq (dead letter topic of 'orders'): does not exist; make it:" +
        ' kafka-topics.sh --bootstrap-server "$KAFKA_BROKERS" --create --topic orders.dlq --partitions 3' +
        ' --config cleanup.policy=delete --config retention.ms=2592000000 --config max.message.bytes=5000',
    ])
    expect(message).toContain("topicSetup: 'create'")
    expect(made).toEqual([])
  })

  test('a main topic that is missing', async () => {
    const { problems } = await verify(cluster({}).admin)
    expect(problems).toHaveLength(3)
    expect(problems[0]).toBe(
      'orders (main topic): does not exist; mend the name, or make it:' +
        ' kafka-topics.sh --bootstrap-server "$KAFKA_BROKERS" --create --topic orders',
    )
  })

  test('a topic of a former schedule that is missing is to be taken out, and is never made', async () => {
    const { admin, made } = cluster(ALL)
    const input = { formerTiers: [{ delayMs: 300_000 }] }
    for (const mode of ['verify', 'create'] as const) {
      expect((await verify(admin, mode, input)).problems).toEqual([
        "orders.retry.5m (retry topic 5m of 'orders'): does not exist; it is of a former schedule: take 5m out of formerTiers",
      ])
    }
    expect(made).toEqual([])
  })

  test.each<[string, string, Partial<FakeTopic>, RegExp]>([
    [
      'R22: a compacted retry topic',
      'orders.retry.1m',
      { cleanupPolicy: 'compact,delete' },
      /compact,delete.*cleanup\.policy=delete$/,
    ],
    ['a compacted dead letter topic', 'orders.dlq', { cleanupPolicy: 'compact' }, /cleanup\.policy is compact/],
    [
      'retention too near to the delay',
      'orders.retry.1m',
      { retentionMs: 3_600_000 },
      /retention\.ms is 3600000 \(1h\).*retention\.ms=259260000$/,
    ],
    [
      'a retry topic for smaller records',
      'orders.retry.1m',
      { maxMessageBytes: 3999 },
      /max\.message\.bytes is 3999: 'orders' takes 4000.*=5000$/,
    ],
    ['a dead letter topic for smaller records', 'orders.dlq', { maxMessageBytes: 10 }, /max\.message\.bytes is 10/],
  ])('%s is refused, or a warning where it must be', async (_name, topic, over, line) => {
    const { admin } = cluster({ ...ALL, [topic]: good(3, over) })
    const { problems, warnings } = await verify(admin)
    expect(problems).toEqual([expect.stringMatching(line)])
    expect(problems[0]).toContain(
      `kafka-configs.sh --bootstrap-server "$KAFKA_BROKERS" --alter --entity-type topics --entity-name ${topic}`,
    )
    expect(warnings).toEqual([])
    const lenient = await verify(admin, 'warn')
    expect(lenient.warnings).toEqual(problems)
    expect(lenient.counts?.size).toBe(3)
  })

  test('a jitter counts as delay', async () => {
    const edge = { ...ALL, 'orders.retry.1m': good(3, { retentionMs: 3_600_000 + 60_000 }) }
    expect((await verify(cluster(edge).admin)).problems).toEqual([])
    expect((await verify(cluster(edge).admin, 'verify', { jitter: 0.5 })).problems).toHaveLength(1)
  })

  test('less than a day beyond the delay is a warning', async () => {
    const short = { ...ALL, 'orders.retry.1m': good(3, { retentionMs: DAY }) }
    const { problems, warnings } = await verify(cluster(short).admin)
    expect(problems).toEqual([])
    expect(warnings).toEqual([expect.stringMatching(/^orders\.retry\.1m .*may be down for a day/)])
  })

  test('topics as the broker makes them by default are taken, with one line about records close to the limit', async () => {
    const alike = { ...ALL, 'orders.retry.1m': good(3, { maxMessageBytes: 4000 }) }
    const { problems, warnings } = await verify(cluster(alike).admin)
    expect(problems).toEqual([])
    expect(warnings).toEqual([expect.stringMatching(/^orders\.retry\.1m: max\.message\.bytes .*raise it by 1000$/)])
  })

  test('what is kept for ever, and settings that are not told, are fine; a compacted main topic too', async () => {
    const unknown = { cleanupPolicy: undefined, retentionMs: undefined, maxMessageBytes: undefined }
    const { admin } = cluster({
      orders: main({ cleanupPolicy: 'compact' }),
      'orders.retry.1m': good(3, { retentionMs: -1 }),
      'orders.dlq': good(3, unknown),
    })
    expect(await verify(admin)).toMatchObject({ problems: [], warnings: [] })
  })

  test('R03: fewer partitions than the main topic are a warning for a retry topic, nothing for a dead letter topic', async () => {
    const { problems, warnings } = await verify(cluster({ ...ALL, 'orders.retry.1m': good(1) }).admin)
    expect(problems).toEqual([])
    expect(warnings).toEqual([expect.stringMatching(/has 1 partitions, 'orders' has 3.*--alter .* --partitions 3$/)])
    expect((await verify(cluster({ ...ALL, 'orders.retry.1m': good(9) }).admin)).warnings).toEqual([])
  })

  test('dead letters that go before their main records are a warning', async () => {
    const short = { ...ALL, 'orders.dlq': good(3, { retentionMs: 6 * DAY }) }
    expect((await verify(cluster(short).admin)).warnings).toEqual([
      expect.stringMatching(/'orders' keeps its records longer/),
    ])
    const forever = { ...ALL, orders: main({ retentionMs: -1 }), 'orders.dlq': good(3, { retentionMs: 30 * DAY }) }
    expect((await verify(cluster(forever).admin)).warnings).toEqual([])
  })

  test('a topic without a partition fails, however lenient', async () => {
    const { admin } = cluster({ ...ALL, 'orders.dlq': good(0) })
    expect((await verify(admin, 'warn')).problems).toEqual([expect.stringMatching(/^orders\.dlq .*has no partition/)])
  })
})

describe('create', () => {
  test('R65: makes retry and dead letter topics with settings of their own, never the main topic', async () => {
    const { admin, made } = cluster({ orders: main({ retentionMs: 3_600_000 }) })
    const outcome = await verify(admin, 'create', { delays: [60_000, 10 * DAY] })
    expect(outcome.problems).toEqual([])
    expect(outcome.counts).toEqual(
      new Map(['orders', 'orders.retry.1m', 'orders.retry.10d', 'orders.dlq'].map((topic) => [topic, 3])),
    )
    const config = (retention: number) => ({
      'cleanup.policy': 'delete',
      'retention.ms': String(retention),
      'max.message.bytes': '5000',
    })
    expect(made).toEqual([
      { topic: 'orders.retry.1m', partitions: 3, config: config(3 * DAY + 60_000) },
      { topic: 'orders.retry.10d', partitions: 3, config: config(20 * DAY) },
      { topic: 'orders.dlq', partitions: 3, config: config(30 * DAY) },
    ])
  })

  test('the main topic missing: nothing is made', async () => {
    const { admin, made } = cluster({})
    const { problems, message } = await verify(admin, 'create')
    expect(problems).toEqual([
      expect.stringMatching(
        /^orders \(main topic\): does not exist; mend the name, or make it: kafka-topics\.sh .*--create/,
      ),
    ])
    expect(message).toMatch(/\ntopicSetup: 'create' makes .*, never a main topic: a typing error would make one too\.$/)
    expect(made).toEqual([])
  })

  test('R65: a start that is refused anyway makes nothing, whatever it is refused for', async () => {
    const wrong: [Record<string, FakeTopic>, Partial<TopologyInput>, RegExp][] = [
      [{ orders: main() }, { topics: ['orders', 'ordres'] }, /^ordres \(main topic\): does not exist/],
      [{ orders: main() }, { formerTiers: [{ delayMs: 5_000 }] }, /^orders\.retry\.5s .*former schedule/],
      [{ orders: good(0) }, {}, /^orders .*has no partition/],
      [{ orders: main(), 'orders.dlq': good(3, { cleanupPolicy: 'compact' }) }, {}, /^orders\.dlq .*compact/],
    ]
    for (const [topics, input, problem] of wrong) {
      const { admin, made } = cluster(topics)
      expect((await verify(admin, 'create', input)).problems).toEqual([expect.stringMatching(problem)])
      expect(made).toEqual([])
    }
    const blind = cluster({ orders: main() }, { settings: () => Promise.reject(forbidden) })
    expect((await verify(blind.admin, 'create')).problems).toEqual([expect.stringMatching(/cannot be checked/)])
    expect(blind.made).toEqual([])
  })

  test('what exists is checked, not changed', async () => {
    const { admin, made } = cluster({ ...ALL, 'orders.dlq': good(3, { cleanupPolicy: 'compact' }) })
    expect((await verify(admin, 'create')).problems).toHaveLength(1)
    expect(made).toEqual([])
  })

  test('another member was faster: fine', async () => {
    const { admin, stored } = cluster(
      { orders: main() },
      {
        createTopics: () => {
          stored.set('orders.retry.1m', good()).set('orders.dlq', good())
          return Promise.reject(new Error('Topic already exists'))
        },
      },
    )
    expect((await verify(admin, 'create')).counts?.size).toBe(3)
  })

  test('making them is refused: told, with the commands', async () => {
    const { admin } = cluster({ orders: main() }, { createTopics: () => Promise.reject(forbidden) })
    const { problems } = await verify(admin, 'create')
    expect(problems).toHaveLength(3)
    expect(problems[2]).toMatch(/^making the missing topics failed: .*Not authorized/)
  })

  test('waits until they can be seen', async () => {
    const { admin, stored } = cluster(
      { orders: main() },
      {
        createTopics: () => {
          setTimeout(() => stored.set('orders.retry.1m', good()).set('orders.dlq', good()), 50)
          return Promise.resolve()
        },
      },
    )
    expect((await verify(admin, 'create')).counts?.size).toBe(3)
  })
})

describe('a cluster that does not let us look', () => {
  const blind = { settings: () => Promise.reject(forbidden) }

  test('settings: fails the check with a mend; is a warning where asked', async () => {
    const line = /^the settings of the topics cannot be checked: .*DescribeConfigs.*topicSetup: 'warn'$/
    expect((await verify(cluster(ALL, blind).admin)).problems).toEqual([expect.stringMatching(line)])
    const lenient = await verify(cluster(ALL, blind).admin, 'warn')
    expect(lenient).toMatchObject({ problems: [], warnings: [expect.stringMatching(line)] })
    expect(lenient.counts?.size).toBe(3)
  })

  test('warn: a missing topic still fails', async () => {
    const { 'orders.dlq': _, ...rest } = ALL
    expect((await verify(cluster(rest, blind).admin, 'warn')).problems).toEqual([
      expect.stringMatching(/^orders\.dlq .*does not exist/),
    ])
  })

  test('topics: each is asked for by itself, and what is hidden is not in the answer', async () => {
    const hide = cluster(ALL)
    const admin = {
      ...hide.admin,
      partitions: (names: readonly string[]) =>
        names.includes('orders.dlq') ? Promise.reject(forbidden) : hide.admin.partitions(names),
    }
    expect(await verify(admin)).toMatchObject({
      code: 'RETRYLINE_TOPICS',
      problems: [expect.stringMatching(/Describe/)],
    })
    const lenient = await verify(admin, 'warn')
    expect([...(lenient.counts ?? [])]).toEqual([
      ['orders', 3],
      ['orders.retry.1m', 3],
    ])
    expect(lenient.warnings).toEqual([expect.stringMatching(/^orders\.dlq: /)])
  })

  test('a broker that is down is another error', async () => {
    const down = Object.assign(new Error('Connection error'), { name: 'KafkaJSConnectionError' })
    for (const mode of ['verify', 'create', 'warn'] as const) {
      const { admin } = cluster(ALL, { partitions: () => Promise.reject(down) })
      expect((await verify(admin, mode)).code).toBe('RETRYLINE_CONNECT')
    }
    expect((await verify(cluster(ALL, { settings: () => Promise.reject(down) }).admin)).code).toBe('RETRYLINE_CONNECT')
  })
})
