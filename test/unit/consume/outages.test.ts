import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DeadLetterLimit } from '../../../src/consume/dead-letter-limit'
import type { Entry, Lane } from '../../../src/consume/lane'
import { Outages, type LaneHost } from '../../../src/consume/outages'
import { createTestClock } from '../../helpers/test-clock'
import { entry, lane, recorder } from './given'

const payments = { dependency: 'payments', because: 'it is down' }

function setUp(limits: Record<string, number> = {}) {
  const clock = createTestClock()
  const { emitter, of } = recorder(clock)
  const outages = new Outages(clock, emitter, {
    ...{ failures: 3, withinMs: 10_000, probeMs: 1_000, maxProbeMs: 4_000 },
    ...limits,
  })
  const probed: { lane: Lane; entry: Entry }[] = []
  const gone: Lane[] = []
  const blocked = new Set<Lane>()
  const host: LaneHost = {
    setAside: (on, one) => void on.aside.push(one),
    firstAside: (on) => (blocked.has(on) ? undefined : on.aside[0]),
    probe(on, one) {
      on.aside.shift()
      probed.push({ lane: on, entry: one })
    },
    goOn(on) {
      gone.push(on)
      on.aside = []
    },
  }
  const fails = (on: Lane, one: Entry, what = payments, last = false): boolean =>
    outages.holds(host, on, one, what, last)
  /** The dependency is down, and these lanes wait for it with a record each. */
  const down = (...lanes: Lane[]): void => {
    for (const one of lanes) fails(one, entry(0), payments, true)
  }
  return { clock, of, outages, probed, gone, blocked, fails, down }
}

describe('outages: when a dependency counts as down', () => {
  test('after so many failures within the time, and not before', async () => {
    const { clock, fails, of } = setUp()
    const one = lane()
    expect([fails(one, entry(0)), fails(one, entry(1))]).toEqual([false, false])
    await clock.advance(10_001)
    expect([fails(one, entry(2)), fails(one, entry(3)), of('held').length]).toEqual([false, false, 0])
    expect(fails(one, entry(4))).toBe(true)
    expect([one.heldBy, one.aside.map(({ offset }) => offset)]).toEqual(['payments', ['4']])
    expect(of('held')).toMatchObject([{ dependency: 'payments', because: 'it is down', failures: 3 }])
  })

  test('each by its own name', () => {
    const { fails } = setUp()
    const names = ['a', 'b', 'a', 'b'].map((dependency) => ({ dependency, because: 'x' }))
    expect(names.map((what, i) => fails(lane(), entry(i), what))).toEqual([false, false, false, false])
  })

  test('at once where the record has no attempt left', () => {
    const { fails } = setUp()
    expect(fails(lane(), entry(0), payments, true)).toBe(true)
  })

  test('once it is down, every lane that says so waits', () => {
    const { fails, down, outages } = setUp()
    const [a, b] = [lane(0), lane(1)]
    down(a)
    expect(fails(b, entry(0))).toBe(true)
    expect(outages.list()).toMatchObject([{ dependency: 'payments', lanes: 2, probes: 0 }])
  })
})

describe('outages: probes', () => {
  test('one record at a time, of one lane after the other, later and later', async () => {
    const { clock, down, fails, probed } = setUp()
    const lanes = [lane(0), lane(1)]
    down(...lanes)
    const at: number[] = []
    for (let i = 0; i < 5; i++) {
      const before = probed.length
      const from = clock.monotonic()
      while (probed.length === before) await clock.advance(250)
      at.push(clock.monotonic() - from)
      const last = probed.at(-1)!
      expect(fails(last.lane, last.entry)).toBe(true)
    }
    expect(at).toEqual([1_000, 2_000, 4_000, 4_000, 4_000])
    expect(probed.map(({ lane: { partition } }) => partition)).toEqual([0, 1, 0, 1, 0])
  })

  test('no second one while the first is under way', async () => {
    const { clock, down, probed } = setUp()
    down(lane(0), lane(1))
    await clock.advance(60_000)
    expect(probed).toHaveLength(1)
  })

  test('one that succeeds: all go on, and it is forgotten', async () => {
    const { clock, down, outages, probed, gone, of } = setUp()
    const lanes = [lane(0), lane(1)]
    down(...lanes)
    await clock.advance(1_000)
    expect(outages.ended(probed[0]!.lane, probed[0]!.entry, false)).toBe(false)
    expect(new Set(gone)).toEqual(new Set(lanes))
    expect(lanes.map(({ heldBy }) => heldBy)).toEqual([undefined, undefined])
    expect([outages.list(), clock.timers]).toEqual([[], 0])
    expect(of('released')).toMatchObject([{ dependency: 'payments', lanes: 2, probes: 1, heldMs: 1_000 }])
  })

  test('another record of the lane that succeeds says nothing: it may not need the dependency', async () => {
    const { clock, down, outages } = setUp()
    const one = lane()
    down(one)
    await clock.advance(1_000)
    outages.ended(one, entry(9), false)
    expect(one.heldBy).toBe('payments')
  })

  test('one that decides nothing (a pause, a shutdown) is set aside again, and another follows', async () => {
    const { clock, down, outages, probed } = setUp()
    const one = lane()
    down(one)
    await clock.advance(1_000)
    expect(outages.ended(one, probed[0]!.entry, true)).toBe(true)
    await clock.advance(1_000)
    expect(probed.map(({ entry: { offset } }) => offset)).toEqual(['0', '0'])
  })

  test('one whose lane is closed meanwhile is not waited for', async () => {
    const { clock, down, probed } = setUp()
    const [a, b] = [lane(0), lane(1)]
    down(a, b)
    await clock.advance(1_000)
    a.close()
    await clock.advance(1_000)
    expect(probed.map(({ lane: { partition } }) => partition)).toEqual([0, 1])
  })

  test('where nothing waits any more it is forgotten, and no timer is left', async () => {
    const { clock, down, outages } = setUp()
    const one = lane()
    down(one)
    one.close()
    await clock.advance(1_000)
    expect([outages.list(), clock.timers]).toEqual([[], 0])
  })

  test('one that cannot start now is tried again', async () => {
    const { clock, down, probed, blocked } = setUp()
    const one = lane()
    blocked.add(one)
    down(one)
    await clock.advance(5_000)
    expect(probed).toHaveLength(0)
    blocked.clear()
    await clock.advance(1_000)
    expect(probed).toHaveLength(1)
  })

  test('one that gets past the one and meets the next: the first is up', async () => {
    const { clock, down, fails, outages, probed, gone } = setUp()
    const [a, b] = [lane(0), lane(1)]
    down(a, b)
    await clock.advance(1_000)
    expect(fails(a, probed[0]!.entry, { dependency: 'stock', because: 'x' }, true)).toBe(true)
    expect([a.heldBy, b.heldBy, gone.includes(b)]).toEqual(['stock', undefined, true])
    expect(outages.list().map(({ dependency }) => dependency)).toEqual(['stock'])
  })

  test('a lane that waits for one dependency does not declare another down', () => {
    const { down, fails, outages, of } = setUp()
    const one = lane()
    down(one)
    expect(fails(one, entry(1), { dependency: 'stock', because: 'x' }, true)).toBe(true)
    expect(outages.list().map(({ dependency }) => dependency)).toEqual(['payments'])
    expect([one.aside.length, of('held').length]).toEqual([2, 1])
  })

  test('close() leaves no timer', () => {
    const { clock, down, outages } = setUp()
    down(lane())
    outages.close()
    expect(clock.timers).toBe(0)
  })

  test('property: at most one probe of a dependency is under way, and no lane is held once all are up', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('fail' as const), lane: fc.nat(3), what: fc.constantFrom('a', 'b') }),
      fc.record({ do: fc.constant('time' as const), ms: fc.nat(5_000) }),
      fc.record({ do: fc.constant('probe' as const), end: fc.constantFrom('ok', 'same', 'other', 'undecided') }),
      fc.record({ do: fc.constant('close' as const), lane: fc.nat(3) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const { clock, fails, outages, probed } = setUp({ failures: 2 })
        const lanes = [0, 1, 2, 3].map((partition) => lane(partition))
        let offset = 0
        const underWay: { lane: Lane; entry: Entry; of: string }[] = []
        const collect = (): void => {
          while (probed.length > 0) {
            const next = probed.shift()!
            underWay.push({ ...next, of: next.lane.heldBy ?? '' })
          }
          const open = underWay.filter((one) => !one.lane.closed).map((one) => one.of)
          expect(new Set(open).size).toBe(open.length)
        }
        const end = (how: string): void => {
          const one = underWay.shift()
          if (one === undefined || one.lane.closed) return
          const other = one.of === 'a' ? 'b' : 'a'
          if (how === 'ok') outages.ended(one.lane, one.entry, false)
          else if (how === 'undecided') outages.ended(one.lane, one.entry, true)
          else fails(one.lane, one.entry, { dependency: how === 'same' ? one.of : other, because: 'x' })
        }
        for (const now of steps) {
          const on = 'lane' in now ? lanes[now.lane]! : undefined
          if (now.do === 'fail' && on?.closed === false)
            fails(on, entry(offset++), { dependency: now.what, because: 'x' })
          else if (now.do === 'time') await clock.advance(now.ms)
          else if (now.do === 'probe') end(now.end)
          else if (now.do === 'close' && on) on.close()
          collect()
        }
        for (let i = 0; i < 20 && outages.list().length > 0; i++) {
          await clock.advance(4_000)
          collect()
          while (underWay.length > 0) end('ok')
        }
        expect(outages.list()).toEqual([])
        for (const one of lanes) if (!one.closed) expect(one.heldBy).toBeUndefined()
        expect(clock.timers).toBe(0)
      }),
      { numRuns: 200 },
    )
  })
})

describe('deadLetterLimit', () => {
  const setUpLimit = (share: number, burst: number) => {
    const clock = createTestClock()
    const { emitter, of } = recorder(clock)
    return { clock, of, limit: new DeadLetterLimit(clock, emitter, { share, burst, withinMs: 60_000 }) }
  }
  const times = <T>(count: number, fn: () => T): T[] => Array.from({ length: count }, fn)

  test('lets the burst through, then halts, and stays so', async () => {
    const { clock, limit, of } = setUpLimit(0.5, 3)
    expect(times(5, () => limit.allows())).toEqual([true, true, true, false, false])
    await clock.advance(3_600_000)
    expect([limit.allows(), limit.halted]).toEqual([false, true])
    expect(of('halted')).toEqual([expect.objectContaining({ deadLetters: 3, of: 3, withinMs: 60_000 })])
    limit.reset()
    expect(limit.allows()).toBe(true)
  })

  test('not while the share is kept', () => {
    const { limit } = setUpLimit(0.5, 3)
    times(10, () => limit.settled())
    expect(times(11, () => limit.allows())).toEqual([...times(10, () => true), false])
  })

  test('only what is within the time counts', async () => {
    const { clock, limit } = setUpLimit(0.5, 3)
    for (let i = 0; i < 20; i++) {
      expect(limit.allows()).toBe(true)
      await clock.advance(20_000)
    }
  })
})
