/** What one group does at moments that are hard to hit from outside: the driver is a stub, told by the test what to report. */
import { describe, expect, test } from 'vitest'
import { createClassifier } from '../../../src/classify'
import { resolveOptions } from '../../../src/config'
import { DeadLetterLimit } from '../../../src/consume/dead-letter-limit'
import { Alone } from '../../../src/consume/alone'
import { packDone } from '../../../src/consume/done-beyond'
import { createDecoder } from '../../../src/consume/decode'
import { Group } from '../../../src/consume/group'
import { groupHealth, problemsOf } from '../../../src/consume/health'
import { Outages } from '../../../src/consume/outages'
import { createProcessor } from '../../../src/consume/process-record'
import type { Outbox, SendResult } from '../../../src/deliver'
import { NonRetryableError, outage } from '../../../src/errors'
import { silentLogger, type CommitEntry, type GroupListener } from '../../../src/ports'
import type { Handler, Outgoing } from '../../../src/record'
import { createTestClock } from '../../helpers/test-clock'
import { hold, message, recorder } from './given'

const WHERE = { topic: 'orders', partition: 0 }
const nothing = (): void => undefined

function setUp(handler: Handler, options: Record<string, unknown> = {}) {
  const clock = createTestClock()
  const { emitter, of } = recorder(clock)
  const kafka = { consumer: nothing, producer: nothing, admin: nothing }
  const settings = resolveOptions({
    ...{ kafka, groupId: 'billing', topic: 'orders', schedule: ['1m'], logger: silentLogger, handler },
    ...options,
  })
  /** Where the frontier has moved; commits that say something else at the same offset are left out. */
  const commits: bigint[] = []
  const sought: bigint[] = []
  let requests = 0
  let listener!: GroupListener
  const consumer = {
    ...{ start: () => Promise.resolve(), stop: () => Promise.resolve(), running: true },
    ...{ seek: (_: unknown, offset: bigint) => void sought.push(offset), pause: nothing, resume: nothing },
    settledOffsets: () => Promise.resolve(undefined),
    commit(entries: readonly CommitEntry[]) {
      requests++
      for (const { offset } of entries) if (offset !== (commits.at(-1) ?? 0n)) commits.push(offset)
      return Promise.resolve()
    },
  }
  const stored = { metadata: '' }
  const away = { isAway: false }
  const admin = {
    committed: () =>
      away.isAway
        ? Promise.reject(new Error('no coordinator'))
        : Promise.resolve([{ ...WHERE, offset: commits.at(-1) ?? 0n, ...stored }]),
    ranges: () => Promise.resolve([{ ...WHERE, low: 0n, high: 100n }]),
  }
  const copies: Outgoing[] = []
  const results: SendResult[] = []
  const outbox: Outbox = {
    failing: new Map(),
    send(copy) {
      copies.push(copy)
      return Promise.resolve(results.shift() ?? 'acknowledged')
    },
    wait: (ms) => new Promise((resolve) => clock.after(ms, () => resolve(true))),
    pending: 0,
    close: nothing,
  }
  const { topology } = settings
  const outages = new Outages(clock, emitter, settings.outage)
  const limit = settings.deadLetterLimit && new DeadLetterLimit(clock, emitter, settings.deadLetterLimit)
  const group = new Group({
    ...{ settings, topology, groupId: 'billing', topics: ['orders'], partitions: 1, tier: undefined, clock, emitter },
    admin: admin as never,
    driver: { consumer: (_: unknown, told: GroupListener) => ((listener = told), consumer) } as never,
    random: () => 0,
    alone: new Alone(),
    isHalted: () => limit?.halted === true,
    isPaused: () => false,
    progress: nothing,
    makeProcessor: (callbacks) =>
      createProcessor({
        ...{
          settings,
          topology,
          outbox,
          outages,
          limit,
          clock,
          emitter,
          random: () => 0,
          frameName: 'frame',
          ...callbacks,
        },
        classifier: createClassifier({ unknownErrors: 'dead-letter', now: () => clock.now() }),
        decoder: createDecoder({ decode: settings.decode, schema: settings.schema }),
        countPartitions: () => Promise.resolve(1),
      }),
  })
  return {
    ...{ group, clock, commits, sought, of, copies, results, stored, away, limit, outages },
    passed: (first: bigint, next: bigint) => listener.passed(WHERE, first, next),
    requests: () => requests,
    rebalancing: () => listener.rebalancing(),
    async assign(memberId = 'a', partitions = [WHERE]) {
      listener.assigned({ memberId, partitions })
      await clock.settle()
    },
    async batch(first: number, count: number, fetchedOffset = first, where = WHERE, bytes?: number) {
      const last = first + count - 1
      const messages = Array.from({ length: count }, (_, i) =>
        message(first + i, { value: Buffer.alloc(bytes ?? i * i) }),
      )
      const place = { fetchedOffset: BigInt(fetchedOffset), lastOffset: BigInt(last) }
      void listener.batch({ ...where, ...place, messages, resolve: nothing })
      await clock.settle()
    },
  }
}

for (const ordering of ['partition', 'key'] as const) {
  test(`P1, ${ordering}: what a stop drops from memory is not passed over by an empty fetch that comes after it`, async () => {
    const first = hold()
    const { group, commits, clock, passed, assign, batch } = setUp(() => first.promise, { ordering, concurrency: 1 })
    await assign()
    await batch(0, 5)
    group.refuse()
    passed(5n, 9n)
    first.resolve()
    await clock.settle()
    const flushed = group.flush(() => false)
    await clock.settle()
    await flushed
    expect(commits).toEqual([1n])
    await group.close()
  })
}

test('P8: the bytes that a lane tells of are whole, and none when nothing is left', async () => {
  const { group, clock, of, assign, batch } = setUp(nothing)
  await assign()
  await batch(0, 6)
  await clock.advance(2_000)
  const bytes: number[] = of('lane').map((event) => event.bytes)
  expect(bytes.every((each) => Number.isInteger(each))).toBe(true)
  expect(bytes.at(-1)).toBe(0)
  await group.close()
})

test('rule 9: a batch that is refused is no sign that what comes was fetched from our position', async () => {
  const { group, clock, commits, passed, assign, batch } = setUp(nothing)
  await assign()
  await batch(40, 2)
  passed(42n, 50n)
  await clock.advance(1_000)
  expect(group.lanes.get('orders/0')?.position).toBe(0n)
  expect(commits).toEqual([])
  await group.close()
})

test('rule 9: behind a batch that has waited for its position, the seek to that does not bring the same again', async () => {
  const { group, clock, away, assign, batch, sought } = setUp(() => undefined)
  away.isAway = true
  await assign()
  await clock.advance(180)
  await batch(0, 5)
  away.isAway = false
  await clock.advance(30)
  expect(group.lanes.get('orders/0')).toMatchObject({ state: 'open', position: 5n, held: 0 })
  expect(sought).toEqual([0n, 5n])
  await batch(5, 5)
  expect(group.lanes.get('orders/0')).toMatchObject({ position: 10n })
  expect(sought).toEqual([0n, 5n])
  await group.close()
})

describe('P7: a record that comes again while its first call runs here', () => {
  test('is handled again, once, where that call paused the lane and threw', async () => {
    const calls: (() => void)[] = []
    const { group, clock, commits, of, assign, batch } = setUp(
      ({ pause }) =>
        new Promise<void>((resolve, reject) => {
          if (calls.length === 0) pause()
          calls.push(calls.length === 0 ? () => reject(new Error('the shop is closed')) : resolve)
        }),
    )
    await assign('a')
    await batch(0, 1)
    await assign('b')
    await batch(0, 1)
    expect([calls.length, of('skipped').length]).toEqual([1, 1])
    calls[0]!()
    await clock.settle()
    expect([calls.length, of('skipped').length]).toEqual([2, 1])
    calls[1]!()
    await clock.advance(1_000)
    expect(commits).toEqual([1n])
    await group.close()
  })

  test('and whose decoding was under way: no handler for the partition that was taken away, one for the new one', async () => {
    const decodings: ((value: unknown) => void)[] = []
    const values: unknown[] = []
    const { group, clock, commits, of, assign, batch } = setUp((_, { value }) => values.push(value), {
      decode: () => new Promise((resolve) => decodings.push(resolve)),
    })
    await assign('a')
    await batch(0, 1)
    await assign('b')
    await batch(0, 1)
    decodings[0]!('of the old lane')
    await clock.settle()
    expect([values, decodings.length]).toEqual([[], 2])
    decodings[1]!('of the new lane')
    await clock.advance(1_000)
    expect([values, commits]).toEqual([['of the new lane'], [1n]])
    expect([of('late'), of('attempt').length]).toEqual([[], 1])
    await group.close()
  })
})

test('P9: a record that is still being decoded when the stop comes is not handled, nor committed', async () => {
  const decoded = hold<unknown>()
  let calls = 0
  const { group, clock, commits, assign, batch } = setUp(() => void calls++, { decode: () => decoded.promise })
  await assign()
  await batch(0, 1)
  group.refuse()
  decoded.resolve(1)
  await clock.settle()
  expect([calls, group.drained]).toEqual([0, true])
  const flushed = group.flush(() => false)
  await clock.settle()
  await flushed
  expect(commits).toEqual([])
  await group.close()
})

test('P12: a partition whose offset cannot be read for long is a problem of its health', async () => {
  const { group, clock, away, assign } = setUp(nothing)
  const health = (): string[] => problemsOf([groupHealth(group, clock, () => false)])
  away.isAway = true
  await assign()
  await clock.advance(9_000)
  expect(health()).toEqual([])
  await clock.advance(2_000)
  expect(health()).toContain('orders/0 has not begun for 11 s: where billing stands there cannot be read')
  away.isAway = false
  await clock.advance(6_000)
  expect(health().filter((line) => line.includes('has not begun'))).toEqual([])
  await group.close()
})

test('P9: a stop while the offsets cannot be read leaves no timer', async () => {
  const { group, clock, away, of, assign } = setUp(nothing)
  away.isAway = true
  await assign()
  await clock.advance(20_000)
  expect(of('problem').length).toBeGreaterThan(3)
  group.refuse()
  await group.close()
  expect(clock.timers).toBe(0)
})

describe('outage', () => {
  const QUICK = { outage: { failures: 1, probe: '1s', maxProbe: '4s' } }

  test('a decoder that finds the dependency down before it has waited for anything is probed again and again', async () => {
    let isDown = true
    let decodings = 0
    const decode = (): number => {
      decodings++
      if (isDown) throw outage('registry')
      return 1
    }
    const { group, clock, commits, outages, assign, batch } = setUp(nothing, { ...QUICK, decode })
    await assign()
    await batch(0, 2)
    await clock.advance(10_000)
    expect([decodings, outages.list().length]).toEqual([4, 1])
    isDown = false
    await clock.advance(4_500)
    expect([commits.at(-1), outages.list()]).toEqual([2n, []])
    await group.close()
  })

  test('partitions with a backlog that fill every place do not keep the probe out for ever', async () => {
    const ends: (() => void)[] = []
    let isDown = true
    const handler: Handler = ({ partition }) => {
      if (partition === 1) return new Promise<void>((resolve) => ends.push(resolve))
      if (isDown) throw outage('payments')
    }
    const OTHER = { topic: 'orders', partition: 1 }
    const { group, clock, commits, outages, assign, batch } = setUp(handler, { ...QUICK, concurrency: 1 })
    await assign('a', [WHERE, OTHER])
    await batch(0, 1)
    await batch(0, 50, 0, OTHER)
    isDown = false
    await clock.advance(20_000)
    expect([ends.length, outages.list().length]).toEqual([1, 1])
    ends[0]!()
    await clock.advance(1_000)
    expect([ends.length, outages.list(), commits.includes(1n)]).toEqual([2, [], true])
    await group.close()
  })
})

test('P5: a partition that was full of what is done already goes on when it has been passed over', async () => {
  const first = hold()
  const { group, clock, commits, stored, assign, batch } = setUp(() => first.promise, { maxBufferedRecords: 100 })
  stored.metadata = packDone(0n, [{ from: 1n, to: 300n }])
  await assign()
  await batch(0, 300)
  await clock.advance(1_000)
  expect(group.lanes.get('orders/0')?.full).toBe(true)
  first.resolve()
  await clock.advance(1_000)
  expect(group.lanes.get('orders/0')).toMatchObject({ held: 0, full: false })
  // As much of the batch was taken as there was room for; the rest comes again, but is known to be done.
  expect(commits.at(-1)).toBe(300n)
  await group.close()
})

test('rule 10, P11: a record that finds no room, though more than half is free, pauses its partition until it does', async () => {
  const first = hold()
  const { group, clock, commits, assign, batch } = setUp(() => first.promise, { maxBufferedBytes: '10KiB' })
  await assign()
  await batch(0, 1)
  const { held, position } = group.lanes.get('orders/0')!
  expect([held, position]).toEqual([1, 1n])
  await batch(1, 1, 1, WHERE, 9_500)
  await clock.advance(1_000)
  expect(group.lanes.get('orders/0')).toMatchObject({ held: 1, position: 1n, full: true })
  first.resolve()
  await clock.advance(1_000)
  expect(group.lanes.get('orders/0')).toMatchObject({ held: 0, full: false })
  await batch(1, 1, 1, WHERE, 9_500)
  await clock.advance(1_000)
  expect([group.lanes.get('orders/0')?.position, commits.at(-1)]).toEqual([2n, 2n])
  await group.close()
})

describe('deadLetterLimit', () => {
  const limits = { deadLetterLimit: { share: 0.5, burst: 2 } }

  test('records whose handlers send something count as well', async () => {
    const bad = new Set(['10', '11', '12', '13'])
    const handler: Handler = ({ message: { offset } }, ctx) => {
      if (bad.has(offset)) throw new NonRetryableError('no such customer')
      ctx.send({ topic: 'mails', value: 'x' })
    }
    const { group, clock, limit, assign, batch } = setUp(handler, limits)
    await assign()
    await batch(0, 20)
    await clock.advance(1_000)
    expect([limit?.halted, group.lanes.get('orders/0')?.held]).toEqual([false, 0])
    await group.close()
  })

  test('holds for a copy that turns out too large, which goes on after a resume', async () => {
    const handler: Handler = ({ message: { offset } }) => {
      throw Number(offset) < 2
        ? new NonRetryableError('no such customer')
        : Object.assign(new Error('x'), { code: 'ECONNRESET' })
    }
    const { group, clock, limit, copies, results, assign, batch } = setUp(handler, limits)
    results.push('acknowledged', 'acknowledged', 'too-large')
    await assign()
    await batch(0, 3)
    await clock.advance(20_000)
    expect([limit?.halted, copies.map(({ topic }) => topic)]).toEqual([
      true,
      ['orders.dlq', 'orders.dlq', 'orders.retry.1m'],
    ])
    limit?.reset()
    await clock.advance(20_000)
    expect([copies.at(-1)?.topic, group.lanes.get('orders/0')?.held]).toEqual(['orders.dlq', 0])
    await group.close()
  })
})

test('rule 13: a lane that has used up what it may start when a rebalance comes commits once, and then waits', async () => {
  const tools: { rebalancing?: () => void } = {}
  let calls = 0
  const handler: Handler = () => {
    if (++calls === 2) tools.rebalancing?.()
  }
  const { group, clock, requests, rebalancing, assign, batch } = setUp(handler, { concurrency: 1 })
  tools.rebalancing = rebalancing
  await assign()
  await batch(0, 1)
  await batch(1, 1)
  await clock.advance(1_000)
  expect(calls).toBe(2)
  const before = requests()
  await clock.advance(1_000)
  expect(requests() - before).toBe(0)
  await group.close()
})

test('batches that come while a lane is opening leave nothing behind when they have waited long enough', async () => {
  const { group, clock, away, assign, batch } = setUp(nothing)
  away.isAway = true
  await assign()
  const lane = group.lanes.get('orders/0')!
  for (let i = 0; i < 5; i++) {
    await batch(0, 3)
    expect(lane.awaited).toBe(true)
    await clock.advance(60)
    expect(lane.awaited).toBe(false)
  }
  away.isAway = false
  await group.close()
})
