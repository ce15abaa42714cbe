import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LIMIT, type PastFailure, readHistory, writeHistory } from '../../../src/envelope'

const failure = (attempt: number, more: Partial<PastFailure> = {}): PastFailure => ({
  attempt,
  at: Date.UTC(2024, 4, 1, 12),
  class: 'Error',
  because: 'HTTP 503',
  ...more,
})

describe('x-history', () => {
  it('is compact JSON, oldest first', () => {
    expect(writeHistory([failure(1), failure(2, { late: 3.6 })])).toBe(
      '[{"attempt":1,"at":"2024-05-01T12:00:00.000Z","class":"Error","because":"HTTP 503"},' +
        '{"attempt":2,"at":"2024-05-01T12:00:00.000Z","class":"Error","because":"HTTP 503","late":4}]',
    )
  })

  it('reads what it wrote', () => {
    const failures = [failure(1), failure(2, { late: 4 })]
    expect(readHistory(writeHistory(failures))).toEqual(failures)
  })

  it('keeps the newest ten', () => {
    const failures = Array.from({ length: 25 }, (_, i) => failure(i + 1))
    expect(readHistory(writeHistory(failures))?.map((entry) => entry.attempt)).toEqual([
      16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    ])
  })

  it('stays within its bytes whatever the texts are, and always tells the last failure', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\u0000'.repeat(500), '\ud800'.repeat(500), '😀'.repeat(99)),
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 15 }), (texts) => {
        const failures = texts.map(([name, because], i) => failure(i + 1, { class: name, because, late: 1e12 }))
        const json = writeHistory(failures)
        expect(Buffer.byteLength(json)).toBeLessThanOrEqual(LIMIT.history)
        expect(readHistory(json)?.at(-1)?.attempt).toBe(texts.length)
      }),
    )
  })

  it('leaves out entries that are not failures', () => {
    const good = writeHistory([failure(1)]).slice(1, -1)
    const bad = [
      '1',
      'null',
      '{}',
      '[]',
      good.replace('1,', '-1,'),
      good.replace('2024', 'year'),
      good.replace('"Error"', '5'),
    ]
    expect(readHistory(`[${[...bad, good].join(',')}]`)).toEqual([failure(1)])
    expect(readHistory(`[${good.replace('}', ',"late":"soon","__proto__":{"x":1}}')}]`)).toEqual([failure(1)])
  })

  it.each(['', '{}', '"[]"', 'null', '[', '[{]'])('is unreadable: %j', (text) => {
    expect(readHistory(text)).toBeUndefined()
  })
})
