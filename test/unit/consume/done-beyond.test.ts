import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MARKS_ROOM } from '../../../src/consume/crash-marks'
import { DoneBeyond, MAX_METADATA, packDone, unpackDone, type OffsetRange } from '../../../src/consume/done-beyond'

const base = fc.constantFrom(0n, 41n, 2n ** 53n - 2n, 2n ** 62n)

/** Ranges as a tracker gives them: in order, apart, beyond the base. `[gap, length]` each. */
function rangesFrom(at: bigint, steps: readonly (readonly [number, number])[]): OffsetRange[] {
  let next = at
  return steps.map(([gap, length]) => {
    const from = next + BigInt(gap)
    next = from + BigInt(length)
    return { from, to: next }
  })
}

const some = fc.array(fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 60 })), { maxLength: 60 })
/** Too many to fit, in both forms. */
const many = fc.array(fc.tuple(fc.integer({ min: 1, max: 90 }), fc.integer({ min: 1, max: 9 })), {
  minLength: 2_500,
  maxLength: 3_000,
})

describe('P1: what is done beyond a commit', () => {
  test('property: comes back as it was, in ASCII, within the limit', () => {
    fc.assert(
      fc.property(base, some, (at, steps) => {
        const ranges = rangesFrom(at, steps)
        const text = packDone(at, ranges)
        expect(text.length).toBeLessThanOrEqual(MAX_METADATA)
        expect(text).toMatch(/^[\x21-\x7e]*$/)
        expect(unpackDone(at, text)).toEqual(ranges)
      }),
    )
  })

  test('property: what does not fit is left out from the end, and nothing is ever said to be done that is not', () => {
    fc.assert(
      fc.property(base, many, (at, steps) => {
        const ranges = rangesFrom(at, steps)
        const text = packDone(at, ranges)
        expect(text.length).toBeLessThanOrEqual(MAX_METADATA)
        expect(text.length).toBeGreaterThan(MAX_METADATA - MARKS_ROOM - 20)
        const back = unpackDone(at, text)!
        expect(back.length).toBeGreaterThan(1_000)
        expect(back).toEqual(ranges.slice(0, back.length))
      }),
      { numRuns: 10 },
    )
  })

  test('takes the shorter of both forms', () => {
    // A long run is two numbers; every other offset is one bit for two offsets.
    expect(packDone(0n, [{ from: 1n, to: 1_025n }])).toBe('rl1:rBggB')
    const everyOther = Array.from({ length: 3_000 }, (_, i) => ({ from: BigInt(i * 2 + 1), to: BigInt(i * 2 + 2) }))
    expect(packDone(0n, everyOther)).toMatch(/^rl1:b/)
    expect(packDone(0n, everyOther).length).toBe('rl1:b'.length + 1_000)
  })

  test('nothing beyond is no text, and no text is nothing beyond', () => {
    expect(packDone(7n, [])).toBe('')
    expect(unpackDone(7n, '')).toEqual([])
  })

  test.each([
    ['another tool', 'v1;host=a'],
    ['another version', 'rl2:bAAAA'],
    ['an unknown form', 'rl1:xAAAA'],
    ['no body', 'rl1:b'],
    ['a foreign character', 'rl1:bAA A'],
    ['a run that does not end', 'rl1:rB'],
    ['a number that does not end', 'rl1:rBBBg'],
    ['a run of none', 'rl1:rBA'],
    ['the committed offset itself', 'rl1:rAB'],
    ['a number beyond all reason', `rl1:rB${'_'.repeat(30)}B`],
    ['a text beyond the limit', `rl1:b${'B'.repeat(MAX_METADATA)}`],
  ])('is not believed: %s', (_what, text) => {
    expect(unpackDone(100n, text)).toBeUndefined()
  })

  test('property: no text at all makes it throw', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `rl1:${text}`),
        ),
        (text) => {
          for (const { from, to } of unpackDone(5n, text) ?? []) expect(from > 5n && to > from).toBe(true)
        },
      ),
    )
  })

  test('property: answers by offset', () => {
    fc.assert(
      fc.property(base, some, (at, steps) => {
        const ranges = rangesFrom(at, steps)
        const done = new DoneBeyond(ranges)
        const end = ranges.at(-1)?.to ?? at
        for (let offset = at; offset < end; offset++) {
          expect(done.isPast(offset)).toBe(false)
          expect(done.has(offset)).toBe(ranges.some(({ from, to }) => from <= offset && offset < to))
        }
        expect([done.isPast(end), done.has(end)]).toEqual([true, false])
      }),
      { numRuns: 50 },
    )
  })
})
