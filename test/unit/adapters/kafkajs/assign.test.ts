import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assign, type Member } from '../../../../src/adapters/kafkajs/assign'

const TOPICS = ['a', 'b', 'c']
type Assigned = ReturnType<typeof assign>

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
const member = (memberId: string, topics: readonly string[], owned: Record<string, number[]> = {}): Member => ({
  memberId,
  topics: new Set(topics),
  owned: new Map(Object.entries(owned)),
})

const someTopics = fc.uniqueArray(fc.constantFrom(...TOPICS), { maxLength: 3 })
const counts = fc.tuple(fc.nat(12), fc.nat(7), fc.nat(3))
const partitionsOf = (list: readonly number[]): Map<string, number[]> =>
  new Map(list.map((count, i) => [TOPICS[i]!, range(count)]))
const anyOwned = fc.dictionary(fc.constantFrom(...TOPICS), fc.array(fc.integer({ min: -1, max: 14 }), { maxLength: 6 }))
const members = fc
  .array(fc.tuple(someTopics, anyOwned), { maxLength: 6 })
  .map((list) => list.map(([topics, owned], i) => member(`m${(i * 7) % 10}`, topics, owned)))

/** Who has what, as `topic/partition -> member`. Fails where two have the same. */
function holders(assigned: Assigned): Map<string, string> {
  const found = new Map<string, string>()
  for (const [memberId, topics] of assigned) {
    for (const [topic, partitions] of topics) {
      for (const partition of partitions) {
        expect(found.has(`${topic}/${partition}`)).toBe(false)
        found.set(`${topic}/${partition}`, memberId)
      }
    }
  }
  return found
}

const owning = (who: readonly Member[], assigned: Assigned): Member[] =>
  who.map((one) => ({ ...one, owned: assigned.get(one.memberId) ?? new Map() }))

function fewestMoves(partitions: number, before: readonly number[]): number {
  // Every member keeps up to its share; the largest holders keep the extra ones.
  const share = Math.floor(partitions / before.length)
  let extras = partitions % before.length
  const kept = [...before]
    .sort((a, b) => b - a)
    .reduce((sum, held) => sum + Math.min(held, share + (held > share && extras-- > 0 ? 1 : 0)), 0)
  return partitions - kept
}

describe('rule 15: the assignment', () => {
  test('property: each partition to exactly one subscriber of its topic, even by topic, the same for the same group', () => {
    fc.assert(
      fc.property(members, counts, fc.nat(), (who, list, turn) => {
        const partitions = partitionsOf(list)
        const assigned = assign(who, partitions)
        const found = holders(assigned)
        for (const [topic, all] of partitions) {
          const subscribers = who.filter(({ topics }) => topics.has(topic))
          const each = subscribers.map(({ memberId }) => assigned.get(memberId)!.get(topic)?.length ?? 0)
          expect([...found.keys()].filter((key) => key.startsWith(topic)).sort()).toEqual(
            subscribers.length === 0 ? [] : all.map((partition) => `${topic}/${partition}`).sort(),
          )
          for (const partition of subscribers.length === 0 ? [] : all) {
            expect(subscribers.map(({ memberId }) => memberId)).toContain(found.get(`${topic}/${partition}`))
          }
          if (each.length > 0) expect(Math.max(...each) - Math.min(...each)).toBeLessThanOrEqual(1)
        }
        expect([...assigned.keys()].sort()).toEqual(who.map(({ memberId }) => memberId).sort())
        // Whoever lists the members in whatever order gets the same answer.
        const at = turn % Math.max(1, who.length)
        expect(assign([...who.slice(at), ...who.slice(0, at)].reverse(), partitions)).toEqual(assigned)
      }),
      { numRuns: 100 },
    )
  })

  test('property: sticky: with the same members and partitions nothing moves', () => {
    fc.assert(
      fc.property(members, counts, (who, list) => {
        const partitions = partitionsOf(list)
        const first = assign(who, partitions)
        expect(assign(owning(who, first), partitions)).toEqual(first)
      }),
      { numRuns: 100 },
    )
  })

  test('property: sticky: when members come and go only what must move does', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 30 }), fc.array(fc.nat(5), { maxLength: 6 }), (count, changes) => {
        const partitions = new Map([['a', range(count)]])
        let who = [member('m0', ['a'])]
        let nextId = 1
        let before = holders(assign(who, partitions))
        for (const change of changes) {
          const leaves = change < 2 && who.length > 1
          if (leaves) who = who.filter((_, i) => i !== change % who.length)
          else who = [...who, member(`m${nextId++}`, ['a'])]
          const owned = new Map<string, number[]>()
          for (const [key, memberId] of before)
            owned.set(memberId, [...(owned.get(memberId) ?? []), Number(key.slice(2))])
          who = who.map((one) => ({ ...one, owned: new Map([['a', owned.get(one.memberId) ?? []]]) }))
          const now = holders(assign(who, partitions))
          const moved = [...now].filter(([key, memberId]) => before.get(key) !== memberId).length
          const held = who.map(({ memberId }) => owned.get(memberId)?.length ?? 0)
          expect(moved).toBe(fewestMoves(count, held))
          before = now
        }
      }),
      { numRuns: 100 },
    )
  })

  test('partitions that were added do not move those that were there', () => {
    const who = [member('m0', ['a']), member('m1', ['a'])]
    const first = assign(who, new Map([['a', range(4)]]))
    const before = holders(first)
    const after = holders(assign(owning(who, first), new Map([['a', range(9)]])))
    for (const [key, memberId] of before) expect(after.get(key)).toBe(memberId)
    expect(after.size).toBe(9)
  })

  test('of two that claim the same partition neither is believed; what is claimed once stays', () => {
    const assigned = assign(
      [member('m0', ['a'], { a: [0, 1] }), member('m1', ['a'], { a: [1, 2] })],
      new Map([['a', range(4)]]),
    )
    expect(assigned.get('m0')!.get('a')).toContain(0)
    expect(assigned.get('m1')!.get('a')).toContain(2)
    expect(holders(assigned).size).toBe(4)
  })

  test('a claim of a topic that is not subscribed any more, or of a partition that does not exist, counts for nothing', () => {
    const assigned = assign(
      [member('m0', ['b'], { a: [0, 1] }), member('m1', ['a'], { a: [7, -1] })],
      new Map([
        ['a', range(2)],
        ['b', range(1)],
      ]),
    )
    expect(assigned).toEqual(
      new Map([
        ['m0', new Map([['b', [0]]])],
        ['m1', new Map([['a', [0, 1]]])],
      ]),
    )
  })

  test('many small topics do not all go to the same member', () => {
    const topics = range(9).map((i) => `t${i}`)
    const assigned = assign(
      range(3).map((i) => member(`m${i}`, topics)),
      new Map(topics.map((topic) => [topic, [0]])),
    )
    expect([...assigned.values()].map(({ size }) => size)).toEqual([3, 3, 3])
  })

  test('nobody there, or nobody who subscribes: nothing is given out', () => {
    expect(assign([], new Map([['a', [0]]]))).toEqual(new Map())
    expect(assign([member('m0', ['b'])], new Map([['a', [0]]]))).toEqual(new Map([['m0', new Map()]]))
  })
})
