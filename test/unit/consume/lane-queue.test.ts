import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LaneQueue, type Waiting } from '../../../src/consume/lane-queue'

type Op =
  | { op: 'push'; key: number; due: number }
  | { op: 'take'; ahead: number }
  | { op: 'release'; which: number }
  | { op: 'putBack'; which: number }
  | { op: 'clear' }

const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 30, arbitrary: fc.record({ op: fc.constant('push' as const), key: fc.nat(3), due: fc.nat(8) }) },
  { weight: 30, arbitrary: fc.record({ op: fc.constant('take' as const), ahead: fc.nat(3) }) },
  { weight: 20, arbitrary: fc.record({ op: fc.constant('release' as const), which: fc.nat() }) },
  { weight: 5, arbitrary: fc.record({ op: fc.constant('putBack' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.constant({ op: 'clear' as const }) },
)

const KEY_OF = {
  partition: () => '',
  // A record without a key is bound to nothing.
  key: (key: number) => (key === 0 ? undefined : `k${key}`),
  unordered: () => undefined,
}

/**
 * The model knows only what the story at the top of lane-queue.ts promises: which items wait, which are taken, and that
 * of a key the first that is not done is the only one that may be given out.
 */
function check(mode: keyof typeof KEY_OF, gated: boolean, ops: readonly Op[]): void {
  const queue = new LaneQueue<Waiting>(gated)
  let waiting: Waiting[] = []
  let taken: Waiting[] = []
  let now = 0
  let seq = 0

  const mayGo = (): Waiting[] =>
    waiting.filter(({ orderKey, seq }) => {
      if (orderKey === undefined) return true
      if (taken.some((item) => item.orderKey === orderKey)) return false
      return !waiting.some((item) => item.orderKey === orderKey && item.seq < seq)
    })
  const takeOne = (): Waiting | undefined => {
    const candidates = mayGo()
    const due = candidates.filter(({ dueAt }) => dueAt <= now)
    expect(queue.nextDue()).toBe(candidates.length === 0 ? undefined : expectedNext(candidates))
    const item = queue.take(now)
    if (item === undefined) {
      // Without a gate nothing waits for time, so something that may go is given out.
      expect(due).toEqual([])
      return undefined
    }
    expect(due).toContain(item)
    if (gated) expect(item.dueAt).toBe(Math.min(...due.map(({ dueAt }) => dueAt)))
    waiting = waiting.filter((other) => other !== item)
    taken.push(item)
    return item
  }
  const expectedNext = (candidates: readonly Waiting[]): number => Math.min(...candidates.map(({ dueAt }) => dueAt))
  const pick = (which: number): Waiting | undefined => {
    const item = taken[which % Math.max(1, taken.length)]
    taken = taken.filter((other) => other !== item)
    return item
  }

  for (const one of ops) {
    if (one.op === 'push') {
      const item = { seq: seq++, dueAt: gated ? one.due * 10 : 0, orderKey: KEY_OF[mode](one.key) }
      queue.push(item)
      waiting.push(item)
    } else if (one.op === 'take') {
      now += one.ahead * 5
      takeOne()
    } else if (one.op === 'release') {
      const item = pick(one.which)
      if (item) queue.release(item)
    } else if (one.op === 'putBack') {
      const item = pick(one.which)
      if (!item) continue
      queue.putBack(item)
      waiting.push(item)
    } else {
      queue.clear()
      waiting = []
      // What runs is released later all the same.
      for (const item of taken.splice(0)) queue.release(item)
    }
    expect(queue.length).toBe(waiting.length)
  }

  // In the end every item comes out, once.
  now = 1_000
  const left = new Set(waiting)
  for (;;) {
    const item = takeOne()
    if (item) {
      expect(left.delete(item)).toBe(true)
      continue
    }
    if (taken.length === 0) break
    for (const running of taken.splice(0)) queue.release(running)
  }
  expect(left.size).toBe(0)
  expect([queue.length, queue.nextDue()]).toEqual([0, undefined])
}

describe('P2, P6: the lane queue, for every interleaving of push, take, release and putBack', () => {
  for (const mode of ['partition', 'key', 'unordered'] as const) {
    for (const gated of [false, true]) {
      test(`${mode}, ${gated ? 'with' : 'without'} due times: one of a key at a time, in order, never early, each once`, () => {
        fc.assert(
          fc.property(fc.array(op, { maxLength: 60 }), (ops) => check(mode, gated, ops)),
          { numRuns: 100 },
        )
      })
    }
  }
})

describe('P2: the due gate', () => {
  const item = (seq: number, dueAt: number, orderKey?: string): Waiting => ({ seq, dueAt, orderKey })

  test('with jitter, what is due first starts first where nothing binds the order', () => {
    const queue = new LaneQueue<Waiting>(true)
    for (const [seq, due] of [50, 20, 40, 10, 30].entries()) queue.push(item(seq, due))
    expect(queue.nextDue()).toBe(10)
    expect(queue.take(9)).toBeUndefined()
    expect([10, 20, 30, 40, 50].map((now) => queue.take(now)?.dueAt)).toEqual([10, 20, 30, 40, 50])
  })

  test('an item of a key waits for an earlier one of that key that is due later', () => {
    const queue = new LaneQueue<Waiting>(true)
    const [late, early] = [item(0, 50, 'a'), item(1, 10, 'a')]
    queue.push(late)
    queue.push(early)
    expect(queue.nextDue()).toBe(50)
    expect(queue.take(49)).toBeUndefined()
    expect(queue.take(50)).toBe(late)
    expect(queue.take(60)).toBeUndefined()
    expect(queue.nextDue()).toBeUndefined()
    queue.release(late)
    expect(queue.take(60)).toBe(early)
  })

  test('what is put back comes before what waits behind its key', () => {
    const queue = new LaneQueue<Waiting>(false)
    const [first, second] = [item(0, 0, ''), item(1, 0, '')]
    queue.push(first)
    queue.push(second)
    expect(queue.take(0)).toBe(first)
    queue.putBack(first)
    expect(queue.take(0)).toBe(first)
    expect(queue.take(0)).toBeUndefined()
    queue.release(first)
    expect(queue.take(0)).toBe(second)
  })
})
