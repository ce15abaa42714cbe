import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expandSchedule, exponential, fixed, LONGEST_DURATION_MS, MOST_ATTEMPTS } from '../../../src/topology'

const problems = (schedule: unknown, options = {}): readonly string[] => {
  const result = expandSchedule(schedule, options)
  return result.ok ? [] : result.problems
}

describe('a list of delays', () => {
  it('expands to ms', () => {
    expect(expandSchedule(['1m', 600_000, '1h'])).toEqual({ ok: true, delays: [60_000, 600_000, 3_600_000], jitter: 0 })
  })

  it('may be empty: straight to the dead letter topic', () => {
    expect(expandSchedule([])).toEqual({ ok: true, delays: [], jitter: 0 })
  })

  it('P13: reports every problem at once, by place', () => {
    const found = problems(['1m', '100', -5, '1M'])
    expect(found.map((problem) => problem.split(':')[0])).toEqual(['schedule[1]', 'schedule[2]', 'schedule[3]'])
  })

  it('takes ten attempts, and more only when allowed', () => {
    expect(problems(Array(9).fill('1m'))).toEqual([])
    expect(problems(Array(10).fill('1m'))).toEqual([
      'schedule: 10 retries are more than 9, and each distinct delay is a topic and a group; ' +
        'use fewer, or set allowManyAttempts',
    ])
    expect(problems(Array(99).fill('1m'), { allowManyAttempts: true })).toEqual([])
    expect(problems(Array(100).fill('1m'), { allowManyAttempts: true })[0]).toMatch(/more than 99.*use fewer$/)
  })

  it('looks at a bounded part of a list that is far too long', () => {
    expect(problems(Array(1_000_000).fill('x'))).toHaveLength(MOST_ATTEMPTS)
  })

  it.each([undefined, null, '1m', 5, {}, { type: 'linear' }, () => 1])('P13: %s is not a schedule', (value) => {
    expect(problems(value, { field: 'retries' })[0]).toMatch(/^retries: .* is not a schedule; give a list of delays/)
  })

  it('refuses holes', () => {
    expect(problems(['1m', , '1h'])).toHaveLength(1)
  })
})

describe('exponential', () => {
  it('grows by its factor up to its maximum', () => {
    expect(expandSchedule(exponential({ first: '1s', factor: 2, max: '10s', retries: 6, jitter: 0.2 }))).toEqual({
      ok: true,
      delays: [1000, 2000, 4000, 8000, 10_000, 10_000],
      jitter: 0.2,
    })
  })

  it('doubles where no factor is given, without jitter', () => {
    expect(expandSchedule(exponential({ first: 1000, retries: 3 }))).toEqual({
      ok: true,
      delays: [1000, 2000, 4000],
      jitter: 0,
    })
  })

  it('rounds to whole ms, never shrinks, and stays within its bounds', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000_000 }),
        fc.double({ min: 1, max: 1000, noNaN: true }),
        fc.nat(9),
        (first, factor, retries) => {
          const result = expandSchedule(exponential({ first, factor, retries }))
          if (!result.ok) throw new Error(result.problems.join())
          expect(result.delays).toHaveLength(retries)
          expect(result.delays.every((delay) => Number.isInteger(delay) && delay <= LONGEST_DURATION_MS)).toBe(true)
          expect(result.delays).toEqual([...result.delays].sort((a, b) => a - b))
          if (retries > 0) expect(result.delays[0]).toBe(first)
        },
      ),
    )
  })

  it('P13: reports every problem at once', () => {
    const bad = exponential({ first: '0s', factor: 0.5, max: '1M', retries: 1.5, jitter: 2 })
    expect(problems(bad).map((problem) => problem.split(':')[0])).toEqual([
      'schedule.first',
      'schedule.max',
      'schedule.factor',
      'schedule.jitter',
      'schedule.retries',
    ])
  })

  it('P13: refuses a maximum below the first delay, and too many retries', () => {
    expect(problems(exponential({ first: '1m', max: '1s', retries: 2 }))).toEqual([
      "schedule.max: '1s' is less than first (1m); raise max",
    ])
    expect(problems(exponential({ first: '1s', retries: 10 }))[0]).toMatch(
      /^schedule\.retries: 10 retries are more than 9/,
    )
  })

  it.each([NaN, Infinity, '2', null])('P13: factor %s', (factor) => {
    expect(problems(exponential({ first: '1s', retries: 1, factor: factor as number }))).toHaveLength(1)
  })

  it.each([-0.1, 1.1, NaN, '0.2', null])('P13: jitter %s', (jitter) => {
    expect(problems(exponential({ first: '1s', retries: 1, jitter: jitter as number }))).toHaveLength(1)
  })

  it.each([-1, NaN, Infinity, '3', undefined])('P13: retries %s', (retries) => {
    expect(problems(exponential({ first: '1s', retries: retries as number }))).toHaveLength(1)
  })
})

it('fixed waits the same each time', () => {
  expect(expandSchedule(fixed({ delay: '5m', retries: 3, jitter: 0.1 }))).toEqual({
    ok: true,
    delays: [300_000, 300_000, 300_000],
    jitter: 0.1,
  })
})
