import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatDuration, LONGEST_DURATION_MS, parseCanonical, parseDuration } from '../../../src/topology'

const length = fc.integer({ min: 1, max: LONGEST_DURATION_MS })

describe('parseDuration', () => {
  it.each([
    ['1ms', 1],
    ['500ms', 500],
    ['1s', 1000],
    ['90s', 90_000],
    ['10m', 600_000],
    ['1h', 3_600_000],
    ['365d', LONGEST_DURATION_MS],
    [1, 1],
    [60_000, 60_000],
  ])('takes %j', (value, ms) => {
    expect(parseDuration(value, 'schedule[0]')).toEqual({ ok: true, ms })
  })

  it.each([
    ...['', '100', '-5m', '+5m', '1M', '1H', '0s', '00s', '01m', '1 m', ' 1m', '1m ', '1m\n', '1.5s', '.5s', '1e3s'],
    ...['1min', '1 minute', '1w', '1y', '1us', 'm', '1m30s', '1,5m', 'NaN', 'Infinity', '٣m', '9'.repeat(16) + 'ms'],
    ...[0, -1, 1.5, NaN, Infinity, -Infinity, null, undefined, true, [], ['1m'], {}, 5n, Symbol('x'), () => 1],
  ])('P13: refuses %s', (value) => {
    const result = parseDuration(value, 'schedule[2]')
    expect(result.ok).toBe(false)
    expect(result.ok ? '' : result.problem).toMatch(
      /^schedule\[2\]: .* is not a duration( \(.+\))?; give a whole number and a unit/,
    )
  })

  it.each(['366d', '8761h', LONGEST_DURATION_MS + 1, Number.MAX_VALUE])(
    'P13: refuses more than a year: %s',
    (value) => {
      const result = parseDuration(value, 'deadline')
      expect(result.ok ? '' : result.problem).toMatch(/^deadline: .* is longer than 365 days; give at most '365d'$/)
    },
  )

  it('shows only the beginning of a long value', () => {
    const result = parseDuration('x'.repeat(10_000), 'schedule[0]')
    expect(result.ok ? '' : result.problem.length).toBeLessThan(250)
  })
})

describe('formatDuration', () => {
  it.each([
    [60_000, '1m'],
    [90_000, '90s'],
    [1500, '1500ms'],
    [1000, '1s'],
    [3_600_000, '1h'],
    [5_400_000, '90m'],
    [86_400_000, '1d'],
    [604_800_000, '7d'],
    [1, '1ms'],
  ])('%d is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  it('comes back through the parser as the same length, and is the only text of that length that is canonical', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          length,
          fc.integer({ min: 1, max: 365 * 24 }).map((hours) => hours * 3_600_000),
        ),
        (ms) => {
          const text = formatDuration(ms)
          expect(parseDuration(text, '')).toEqual({ ok: true, ms })
          expect(parseCanonical(text)).toBe(ms)
        },
      ),
    )
  })
})

it.each(['60s', '1000ms', '24h', '60m', '3600s', '1', '', 'x', '0m'])('%j is not canonical', (text) => {
  expect(parseCanonical(text)).toBeUndefined()
})
