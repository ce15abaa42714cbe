import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { truncateUtf8 } from '../../../src/record/text'

describe('truncateUtf8', () => {
  it.each([
    ['abc', 3, 'abc'],
    ['abc', 2, 'ab'],
    ['€€', 5, '€'],
    ['€', 2, ''],
    ['a😀', 4, 'a'],
    ['a😀', 5, 'a😀'],
    ['abc', 0, ''],
    ['abc', -1, ''],
    ['abc', NaN, ''],
    ['abc', 2.9, 'ab'],
    ['abc', Infinity, 'abc'],
    ['', 0, ''],
  ])('%s in %d bytes is %s', (text, bytes, cut) => {
    expect(truncateUtf8(text, bytes)).toBe(cut)
  })

  it('gives the longest start that fits, never cut inside a character', () => {
    const texts = fc.oneof(fc.string({ unit: 'binary', maxLength: 40 }), fc.string({ unit: 'grapheme', maxLength: 40 }))
    fc.assert(
      fc.property(texts, fc.nat(100), (text, bytes) => {
        const cut = truncateUtf8(text, bytes)
        expect(text.startsWith(cut)).toBe(true)
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(bytes)
        const [next] = text.slice(cut.length)
        if (next !== undefined) expect(Buffer.byteLength(cut + next)).toBeGreaterThan(bytes)
        const isWellFormed = (part: string): boolean => !/\p{Surrogate}/u.test(part)
        if (isWellFormed(text)) expect(isWellFormed(cut)).toBe(true)
      }),
    )
  })
})
