import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../../src/errors'
import { judge, NOW, shaped } from './helpers'

const DAY = 24 * 3_600_000
const after = (error: unknown): number | undefined => {
  const verdict = judge(error)
  return verdict.kind === 'retry' ? verdict.after : undefined
}
const answered = (headers: unknown, status = 429): Error => shaped('x', { response: { status, headers } })

describe('Retry-After', () => {
  class AxiosHeaders {
    'retry-after' = '7'
    get(name: string): unknown {
      return (this as Record<string, unknown>)[name.toLowerCase()]
    }
  }

  it.each<[string, unknown]>([
    ['fetch', new Headers({ 'Retry-After': '7' })],
    ['axios', new AxiosHeaders()],
    ['a Map', new Map([['RETRY-AFTER', '7']])],
    ['a plain object', { 'Retry-After': '7' }],
    ['a plain object, lower case', { 'retry-after': ' 7 ' }],
    ['a number', { 'retry-after': 7 }],
    ['several values', { 'retry-after': ['7', '9'] }],
    ['an object without prototype', Object.assign(Object.create(null) as object, { 'rEtry-aFter': '7' })],
  ])('from %s', (_, headers) => {
    expect(after(answered(headers))).toBe(7000)
    expect(after(shaped('x', { status: 503, headers }))).toBe(7000)
  })

  it.each<[unknown, number | undefined]>([
    ['0.5', 500],
    ['Sun, 01 Mar 2026 12:01:30 GMT', 90_000],
    ['2026-03-01T12:01:30Z', 90_000],
    ['Sun, 01 Mar 2026 11:00:00 GMT', undefined],
    ['0', undefined],
    ['-5', undefined],
    ['soon', undefined],
    ['retry 2099', undefined],
    ['999999999', DAY],
    ['Fri, 01 Jan 2100 00:00:00 GMT', DAY],
    ['1e9', undefined],
    [Infinity, DAY],
    [NaN, undefined],
    ['', undefined],
    ['9'.repeat(100_000), undefined],
    [{}, undefined],
    [null, undefined],
  ])('%j', (value, ms) => {
    expect(after(answered({ 'retry-after': value }))).toBe(ms)
  })

  it('is heeded for 429 and 503 only', () => {
    const headers = { 'retry-after': '7' }
    expect(after(answered(headers, 503))).toBe(7000)
    expect(after(answered(headers, 500))).toBeUndefined()
    expect(judge(answered(headers, 400))).not.toHaveProperty('after')
  })

  it('is found behind other errors, and from a thrown Response', () => {
    expect(after(new Error('x', { cause: answered({ 'retry-after': '7' }) }))).toBe(7000)
    expect(after(new AggregateError([answered({ 'retry-after': '7' })]))).toBe(7000)
    expect(after(new Response(null, { status: 429, headers: { 'retry-after': '7' } }))).toBe(7000)
  })

  it('may be a property, in seconds unless it says ms', () => {
    expect(after(shaped('x', { status: 429, retryAfter: 7 }))).toBe(7000)
    expect(after(shaped('x', { status: 429, retryAfterSeconds: 7 }))).toBe(7000)
    expect(after(shaped('x', { status: 429, retryAfterMs: 7 }))).toBe(7)
    expect(after(shaped('x', { status: 429, retryAfter: '7' }))).toBe(7000)
  })

  it('is not to be had from headers that throw', () => {
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error('no')
        },
        ownKeys: () => {
          throw new Error('no')
        },
      },
    )
    expect(judge(answered(hostile))).toMatchObject({ rule: 'http-transient' })
    expect(judge(answered({ get: () => hostile }))).toMatchObject({ rule: 'http-transient' })
  })

  it('reads a date against the clock that it is given', () => {
    const error = answered({ 'retry-after': 'Sun, 01 Mar 2026 12:01:30 GMT' })
    expect(judge(error, { now: () => NOW + 60_000 })).toMatchObject({ after: 30_000 })
  })
})

describe('RetryableError.after', () => {
  it('is taken as it stands, in ms', () => {
    expect(after(new RetryableError('x', { after: 600_000 }))).toBe(600_000)
    expect(after(new Error('x', { cause: new RetryableError('x', { after: 1 }) }))).toBe(1)
    expect(after(new RetryableError('x'))).toBeUndefined()
  })

  it('beats the header, which counts where there is none', () => {
    const cause = answered({ 'retry-after': '7' })
    expect(after(new RetryableError('x', { after: 5, cause }))).toBe(5)
    expect(after(new RetryableError('x', { cause }))).toBe(7000)
  })

  it('may be a duration as text, by the grammar of the schedule', () => {
    expect(after(new RetryableError('x', { after: '10m' }))).toBe(600_000)
    expect(new RetryableError('x', { after: '10m' }).after).toBe('10m')
  })

  it.each([NaN, -1, -Infinity, '5', '10 minutes', '0s', null as unknown as number])(
    'is nothing when it is %s: the record is retried all the same, and somebody told',
    (given) => {
      const problems: Error[] = []
      const verdict = judge(new RetryableError('x', { after: given }), { onProblem: (error) => problems.push(error) })
      expect(verdict).toMatchObject({ kind: 'retry', rule: 'retryable-error' })
      expect(verdict).not.toHaveProperty('after')
      const [problem, ...others] = problems.map(({ message }) => message)
      expect(others).toEqual([])
      expect(problem).toMatch(/^a RetryableError: after is .*, which is no duration; give ms, or text such as '10m'/)
    },
  )

  it('is at most a year', () => {
    expect(after(new RetryableError('x', { after: Infinity }))).toBe(365 * DAY)
  })
})
