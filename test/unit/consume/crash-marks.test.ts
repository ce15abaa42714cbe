import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MARKS_ROOM, packMarks, unpackMarks, type CrashMarks } from '../../../src/consume/crash-marks'
import { MAX_METADATA, packDone, unpackCommit, type OffsetRange } from '../../../src/consume/done-beyond'

const base = fc.constantFrom(0n, 41n, 2n ** 53n - 2n, 2n ** 62n)
const count = fc.oneof(fc.nat(50), fc.nat(100_000), fc.integer({ min: 0, max: 2 ** 40 }))
const who = fc.string({ unit: fc.constantFrom(...'Az09-_'), minLength: 4, maxLength: 4 })

/** Marks as a lane writes them: suspects at offsets of their own, no more of them than are kept. */
const marks = (at: bigint, maxLength = 8): fc.Arbitrary<CrashMarks> =>
  fc
    .record({
      open: fc.option(fc.record({ records: count, by: who }), { nil: undefined }),
      careful: count,
      carefulBy: fc.option(who, { nil: undefined }),
      suspects: fc
        .uniqueArray(
          fc.record({
            distance: count,
            deaths: fc.nat(1_000_000),
            by: fc.array(who, { maxLength: 4 }),
            running: fc.boolean(),
          }),
          { selector: ({ distance }) => distance, maxLength },
        )
        .map((all) => all.map(({ distance, ...rest }) => ({ offset: at + BigInt(distance), ...rest }))),
    })
    // Where nothing is to be handled with care, nobody is named for it.
    .map((one) => (one.careful > 0 ? one : { ...one, carefulBy: undefined }))

const both = (maxLength?: number) => base.chain((at) => fc.tuple(fc.constant(at), marks(at, maxLength)))
const steps = fc.array(fc.tuple(fc.integer({ min: 1, max: 90 }), fc.integer({ min: 1, max: 9 })), { maxLength: 3_000 })

describe('crash-loop marks: the text', () => {
  test('property: comes back as it was, and leaves what stands behind it', () => {
    fc.assert(
      fc.property(both(), fc.constantFrom('', 'bAB', 'rBB'), ([at, one], rest) => {
        const text = packMarks(at, one)
        expect(text).toMatch(/^[\w.-]*$/)
        expect(text.length).toBeLessThanOrEqual(MARKS_ROOM)
        expect(unpackMarks(at, text + rest)).toEqual({ marks: one, rest })
      }),
    )
  })

  test('property: of more suspects than find room, those at work and those with the most deaths are kept', () => {
    fc.assert(
      fc.property(both(30), ([at, one]) => {
        const kept = unpackMarks(at, packMarks(at, one))?.marks.suspects ?? []
        expect(kept.length).toBe(Math.min(8, one.suspects.length))
        for (const suspect of kept) expect(one.suspects).toContainEqual(suspect)
        const rank = ({ running, deaths }: CrashMarks['suspects'][number]): number =>
          (running ? 10_000_000 : 0) + deaths
        const dropped = one.suspects.filter(({ offset }) => !kept.some((other) => other.offset === offset))
        const least = Math.min(...kept.map(rank))
        for (const suspect of dropped) expect(rank(suspect)).toBeLessThanOrEqual(least)
      }),
    )
  })

  test('property: with what is done behind it, the whole is never longer than the limit, and says nothing false', () => {
    fc.assert(
      fc.property(both(30), steps, ([at, one], gaps) => {
        let next = at
        const ranges = gaps.map(([gap, length]): OffsetRange => {
          const from = next + BigInt(gap)
          return { from, to: (next = from + BigInt(length)) }
        })
        const text = packDone(at, ranges, one)
        expect(text.length).toBeLessThanOrEqual(MAX_METADATA)
        const told = unpackCommit(at, text)
        expect(told?.marks.open).toEqual(one.open)
        expect(told?.marks.careful).toBe(one.careful)
        expect(told?.done).toEqual(ranges.slice(0, told?.done.length))
      }),
      { numRuns: 60 },
    )
  })

  test('property: any text is read, or refused; it never throws, and what is read has bounds', () => {
    const own = fc.string({ unit: fc.constantFrom(...'ocsx0123456789-._ABbr'), maxLength: 60 })
    fc.assert(
      fc.property(base, fc.oneof(own, fc.string({ unit: 'binary', maxLength: 60 })), (at, text) => {
        const told = unpackCommit(at, `rl1:${text}`)
        if (told === undefined) return
        expect(told.marks.suspects.length).toBeLessThanOrEqual(8)
        expect(told.marks.careful).toBeLessThanOrEqual(2 ** 40)
        expect(told.marks.open?.records ?? 0).toBeLessThanOrEqual(2 ** 40)
        for (const { by, offset, deaths } of told.marks.suspects) {
          expect(by.length).toBeLessThanOrEqual(4)
          expect(offset >= at && offset - at <= 2n ** 40n && deaths <= 1_000_000).toBe(true)
        }
      }),
      { numRuns: 500 },
    )
  })
})
