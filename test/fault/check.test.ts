/** The checker is shown each fault that it is there to find, and each duplicate that it must let pass. */
import { describe, expect, it } from 'vitest'
import type { Line } from './ledger'
import { call, found, MAIN, rebalance, TIER } from './made-up'

describe('the checker finds', () => {
  it('a record that nobody handled', () => {
    expect(found([])).toMatchObject({ lost: 1, problems: [expect.stringContaining('lost: t/0@0')] })
    expect(found([call({ at: 1, ends: 2, outcome: 'failed' })]).lost).toBe(1)
    expect(found([call({ at: 1 })]).lost).toBe(1)
  })

  it('a record that was handled and dead-lettered, or never produced', () => {
    expect(found([call({ at: 1, ends: 2 })], { deadLetters: [`${MAIN}0`] }).problems).toHaveLength(1)
    expect(found([call({ at: 1, ends: 2 }), call({ offset: 9, at: 3, ends: 4 })]).problems).toHaveLength(1)
  })

  it('a call before its time', () => {
    const lines = [call({ at: 1, ends: 2, outcome: 'failed' }), call({ attempt: 2, at: 300, ends: 301, dueAt: 302 })]
    expect(found(lines)).toMatchObject({ early: 1, problems: [expect.stringContaining('early by 2 ms')] })
  })

  it('no such call where the clock of a worker was set back between its look and the call', () => {
    const skewed = (at: number, skew: number): Line => ({ what: 'note', text: '', worker: 'A', pid: 65, at, skew })
    const due = 5_000
    const lines = (at: number, back: number) => [
      call({ at: 1, ends: 2, outcome: 'failed' }),
      [skewed(back - 1, 0), skewed(back, -60_000)],
      call({ attempt: 2, at, ends: at + 1, dueAt: due }).map((line) => ({ ...line, skew: -60_000 })),
    ]
    expect(found(lines(6_000, 5_500)).early).toBe(0)
    // The due time was written by the clock that was ahead, and the clock is right again.
    const ahead = [
      call({ at: 1, ends: 2, outcome: 'failed' }),
      [skewed(100, 70_000), skewed(5_500, 0)],
      call({ attempt: 2, at: 6_000, ends: 6_001, dueAt: 75_400 }),
    ]
    expect(found(ahead).early).toBe(0)
    // Not due by the clock of before either, or set back long before.
    expect(found(lines(4_900, 4_500)).early).toBe(1)
    expect(found(lines(9_000, 5_500)).early).toBe(1)
  })

  it('a second call without a reason', () => {
    const twice = [call({ at: 1, ends: 2 }), call({ worker: 'B', at: 5000, ends: 5001 })]
    expect(found(twice).unexplained).toBe(1)
    // A rebalance long after it was committed, one of another tier, one of before, one after the second call.
    expect(found([...twice, rebalance('A', 4500)]).unexplained).toBe(1)
    expect(found([...twice, rebalance('A', 100, 1, '300ms')]).unexplained).toBe(1)
    expect(found([...twice, rebalance('A', 0)]).unexplained).toBe(1)
    const kills = new Map([['A', 4500]])
    expect(found(twice, { kills }).unexplained).toBe(1)
    expect(found(twice, { kills: new Map([['B', 100]]) }).unexplained).toBe(1)
  })

  it('a second call in one process that kept the partition', () => {
    const twice = [call({ at: 1, ends: 2 }), call({ at: 300, ends: 301 })]
    expect(found([...twice, rebalance('A', 100, 0)]).unexplained).toBe(1)
    expect(found([...twice, rebalance('A', 100, 1)]).unexplained).toBe(0)
    const crash: Line = { what: 'crashed', worker: 'A', pid: 'A'.charCodeAt(0), at: 100, tier: 'main' }
    expect(found([...twice, [crash]]).unexplained).toBe(0)
    expect(found([...twice, [{ ...crash, tier: '300ms' }]]).unexplained).toBe(1)
  })

  it('a copy more than there were failures', () => {
    const failed = [call({ at: 1, ends: 2, outcome: 'failed' }), call({ attempt: 2, at: 400, ends: 401 })]
    const again = call({ attempt: 2, at: 500, ends: 501, source: `${TIER}77` })
    expect(found([...failed, again]).unexplained).toBe(1)
    const dead = [call({ at: 1, ends: 2, outcome: 'failed' })]
    expect(found(dead, { deadLetters: [`${MAIN}0`, `${MAIN}0`] }).problems).toHaveLength(1)
  })

  it('first attempts out of order, or two at a time', () => {
    const produced = [`${MAIN}0`, `${MAIN}1`]
    const swapped = [call({ offset: 1, at: 1, ends: 2 }), call({ offset: 0, at: 3, ends: 4 })]
    expect(found(swapped, { produced }).problems).toEqual([expect.stringContaining('out of order on t/0')])
    const together = [call({ offset: 0, at: 1, ends: 5 }), call({ offset: 1, at: 3, ends: 7 })]
    expect(found(together, { produced }).problems).toHaveLength(1)
  })
})

describe('the checker lets pass, and counts', () => {
  it('what was in flight, or done and uncommitted, at a kill', () => {
    const kills = new Map([['A', 1000]])
    const again = call({ worker: 'B', at: 7000, ends: 7001 })
    expect(found([call({ at: 990 }), again], { kills }).duplicates.kill).toBe(1)
    expect(found([call({ at: 900, ends: 910 }), again], { kills }).duplicates.kill).toBe(1)
  })

  it('what was in flight, or done and uncommitted, at a rebalance', () => {
    const again = call({ worker: 'B', at: 1100, ends: 1101 })
    const inFlight = [call({ at: 900, ends: 1500 }), again, rebalance('A', 1000)]
    expect(found(inFlight)).toMatchObject({ duplicates: { revocation: 1 }, problems: [] })
  })

  it('the children of a record that was handled twice', () => {
    const lines = [
      call({ at: 900, ends: 950, outcome: 'failed' }),
      rebalance('A', 1000),
      call({ worker: 'B', at: 1100, ends: 1150, outcome: 'failed' }),
      call({ attempt: 2, at: 1300, ends: 1301, dueAt: 1250 }),
      call({ attempt: 2, at: 1500, ends: 1501, dueAt: 1450, source: `${TIER}77` }),
    ]
    expect(found(lines)).toMatchObject({ duplicates: { revocation: 1, copiedTwice: 1 }, problems: [] })
  })

  it('a copy whose acknowledgement was lost in an outage', () => {
    const lines = [
      call({ at: 900, ends: 950, outcome: 'failed' }),
      call({ attempt: 2, at: 1300, ends: 1301 }),
      call({ attempt: 2, at: 9500, ends: 9501, source: `${TIER}77` }),
    ]
    expect(found(lines, { outages: [{ from: 960, to: 5000 }] })).toMatchObject({ problems: [] })
    expect(found(lines, { outages: [{ from: 20_000, to: 25_000 }] }).unexplained).toBe(1)
  })
})
