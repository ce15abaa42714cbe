import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CommitTracker, type Tracked } from '../../../src/consume/commit-tracker'

const item = (offset: bigint, tail?: bigint): Tracked => ({ settled: false, offset: offset.toString(), tail })

interface Model {
  readonly item: Tracked
  /** The offset behind it, once everything up to it is settled. */
  end: bigint
}

/** What may be committed, by the plainest means: the end of the longest settled run from the start. */
function frontierOf(start: bigint, added: readonly Model[]): bigint {
  let frontier = start
  for (const { item, end } of added) {
    if (!item.settled) return frontier
    frontier = end
  }
  return frontier
}

describe('P1: the frontier', () => {
  test('for every interleaving of add, settle and pass: never passes an unsettled item, never falls, is never behind', () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ op: fc.constant('add' as const), gap: fc.nat(3), tail: fc.nat(4) }) },
      { weight: 5, arbitrary: fc.record({ op: fc.constant('settle' as const), which: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ op: fc.constant('pass' as const), gap: fc.nat(5) }) },
    )
    const start = fc.constantFrom(0n, 41n, 2n ** 53n - 2n, 2n ** 62n)
    fc.assert(
      fc.property(start, fc.array(step, { maxLength: 50 }), (from, steps) => {
        const tracker = new CommitTracker<Tracked>(from)
        let added: Model[] = []
        let base = from
        let next = from
        let before = from
        for (const one of steps) {
          if (one.op === 'add') {
            const offset = next + BigInt(one.gap)
            // A tail of 0 stands for a record that is not the last of its batch.
            const tail = one.tail === 0 ? undefined : offset + BigInt(one.tail)
            const entry = item(offset, tail)
            next = tail ?? offset + 1n
            tracker.add(entry)
            added.push({ item: entry, end: next })
          } else if (one.op === 'settle') {
            const chosen = added[one.which % Math.max(1, added.length)]
            if (!chosen) continue
            const moved = tracker.settle(chosen.item)
            expect(moved).toBe(frontierOf(base, added) > before)
          } else {
            next += BigInt(one.gap)
            const moved = tracker.pass(next)
            // Behind what is pending it becomes the end of the last of them; else it stands at once.
            if (added.some(({ item }) => !item.settled)) added.at(-1)!.end = next
            else {
              base = next
              added = []
            }
            expect(moved).toBe(frontierOf(base, added) > before)
          }
          const { frontier } = tracker
          expect(frontier).toBe(frontierOf(base, added))
          expect(frontier >= before).toBe(true)
          for (const { item } of added) if (!item.settled) expect(frontier <= BigInt(item.offset)).toBe(true)
          const beyond = tracker.beyond()
          for (const { item } of added) {
            const offset = BigInt(item.offset)
            const said = beyond.some(({ from, to }) => from <= offset && offset < to)
            expect(said).toBe(item.settled && offset >= frontier)
          }
          beyond.forEach(({ from, to }, i) =>
            expect([from > (beyond[i - 1]?.to ?? frontier), to > from]).toEqual([true, true]),
          )
          before = frontier
        }
        for (const { item } of added) tracker.settle(item)
        expect(tracker.frontier).toBe(next)
        expect(tracker.length).toBe(0)
      }),
      { numRuns: 200 },
    )
  })

  test('rule 11: steps from record to record, and behind a batch to the end of the batch', () => {
    const tracker = new CommitTracker<Tracked>(0n)
    const [a, b, c] = [item(3n), item(17n), item(20n, 40n)]
    for (const one of [a, b, c]) tracker.add(one)
    expect(tracker.settle(b)).toBe(false)
    expect(tracker.frontier).toBe(0n)
    expect(tracker.settle(a)).toBe(true)
    expect(tracker.frontier).toBe(18n)
    expect(tracker.settle(c)).toBe(true)
    expect(tracker.frontier).toBe(40n)
  })

  test('rule 11: what no handler sees is passed at once where nothing is pending, else behind the last record', () => {
    const tracker = new CommitTracker<Tracked>(5n)
    expect(tracker.pass(9n)).toBe(true)
    expect(tracker.pass(7n)).toBe(false)
    expect(tracker.frontier).toBe(9n)
    const last = item(12n)
    tracker.add(last)
    expect(tracker.pass(30n)).toBe(false)
    expect(tracker.pass(20n)).toBe(false)
    expect(tracker.frontier).toBe(9n)
    tracker.settle(last)
    expect(tracker.frontier).toBe(30n)
  })

  test('settling twice changes nothing', () => {
    const tracker = new CommitTracker<Tracked>(0n)
    const [a, b] = [item(0n), item(1n)]
    tracker.add(a)
    tracker.add(b)
    expect(tracker.settle(a)).toBe(true)
    expect(tracker.settle(a)).toBe(false)
    expect(tracker.frontier).toBe(1n)
    expect(tracker.length).toBe(1)
  })

  test('P8: exact beyond 2^53', () => {
    const at = 2n ** 63n - 2n
    const tracker = new CommitTracker<Tracked>(at)
    const one = item(at)
    tracker.add(one)
    tracker.settle(one)
    expect(tracker.frontier).toBe(at + 1n)
  })
})
