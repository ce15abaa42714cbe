import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BatchQueue, type BatchItem } from '../../../src/consume/batch-queue'
import { createManualClock } from '../../../src/testing/clock'

interface Item extends BatchItem {
  readonly alone: boolean
}

type Op =
  | { op: 'push'; key: number; due: number; bytes: number; alone: boolean }
  | { op: 'take'; ahead: number; slow: boolean }
  | { op: 'leave'; batch: number; how: readonly number[] }
  | { op: 'clear' }

const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 40,
    arbitrary: fc.record({
      op: fc.constant('push' as const),
      key: fc.nat(3),
      due: fc.nat(8),
      bytes: fc.integer({ min: 1, max: 12 }),
      alone: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({ op: fc.constant('take' as const), ahead: fc.nat(3), slow: fc.nat(9).map((n) => n === 0) }),
  },
  // 0: released, 1: put back, 2: put back to come with fewer.
  {
    weight: 20,
    arbitrary: fc.record({
      op: fc.constant('leave' as const),
      batch: fc.nat(),
      how: fc.array(fc.nat(2), { minLength: 5, maxLength: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ op: 'clear' as const }) },
)

const KEY_OF = {
  partition: () => '',
  key: (key: number) => (key === 0 ? undefined : `k${key}`),
  unordered: () => undefined,
}
const MAX_RECORDS = 5
const MAX_BYTES = 30

/** The model knows only what the story at the top of batch-queue.ts promises. */
function check(mode: keyof typeof KEY_OF, gated: boolean, ops: readonly Op[]): void {
  let slow = false
  const queue = new BatchQueue<Item>({
    maxRecords: () => (slow ? 1 : MAX_RECORDS),
    maxBytes: MAX_BYTES,
    lingerMs: 0,
    clock: createManualClock(),
    isAlone: ({ alone }) => alone,
    wake: () => undefined,
  })
  let waiting: Item[] = []
  let batches: Item[][] = []
  const limits = new Map<Item, number>()
  let now = 0
  let seq = 0

  const isBusy = (key: string | undefined): boolean =>
    key !== undefined && batches.flat().some(({ orderKey }) => orderKey === key)
  /** Items that could be the next of the batch so far: of each key the first that waits. */
  const mayGo = (batch: readonly Item[]): Item[] =>
    waiting.filter(
      (item) =>
        !batch.includes(item) &&
        item.dueAt <= now &&
        !isBusy(item.orderKey) &&
        !waiting.some(
          (other) =>
            item.orderKey !== undefined &&
            other.orderKey === item.orderKey &&
            other.seq < item.seq &&
            !batch.includes(other),
        ),
    )

  function take(): void {
    const first = queue.take(now)
    if (first === undefined) {
      expect(mayGo([])).toEqual([])
      return
    }
    const batch = [first, ...queue.along(first)]
    expect(queue.along(first)).toEqual([])
    const limit = limits.get(first)
    expect(batch.length).toBeLessThanOrEqual(Math.min(slow ? 1 : MAX_RECORDS, limit ?? MAX_RECORDS))
    expect(batch.length === 1 || batch.reduce((sum, { bytes }) => sum + bytes, 0) <= MAX_BYTES).toBe(true)
    if (batch.length > 1) expect(batch.some(({ alone }) => alone)).toBe(false)
    expect(new Set(batch.map((item) => limits.get(item))).size).toBe(1)
    expect(batch.map((item) => item.seq)).toEqual([...batch.map((item) => item.seq)].sort((a, b) => a - b))
    // Each was allowed to go in its turn; in due order, the batch itself being in the order of coming.
    const soFar: Item[] = []
    const left = new Set(batch)
    while (left.size > 0) {
      const allowed = mayGo(soFar).filter((item) => left.has(item))
      expect(allowed).not.toEqual([])
      for (const item of allowed) {
        soFar.push(item)
        left.delete(item)
      }
    }
    // Nothing that could have come along was left out for nothing.
    const isFull = batch.length >= Math.min(slow ? 1 : MAX_RECORDS, limit ?? MAX_RECORDS) || batch[0]!.alone
    const could = mayGo(batch)
    const bytes = batch.reduce((sum, item) => sum + item.bytes, 0)
    if (!isFull && could.length > 0) {
      const next = could.reduce((a, b) => (b.dueAt < a.dueAt || (b.dueAt === a.dueAt && b.seq < a.seq) ? b : a))
      expect(bytes + next.bytes > MAX_BYTES || next.alone || limits.get(next) !== limit).toBe(true)
    }
    waiting = waiting.filter((item) => !batch.includes(item))
    batches.push(batch)
  }

  for (const one of ops) {
    if (one.op === 'push') {
      const item: Item = {
        seq: seq++,
        dueAt: gated ? one.due : 0,
        orderKey: KEY_OF[mode](one.key),
        bytes: one.bytes,
        alone: one.alone,
      }
      waiting.push(item)
      queue.push(item)
    } else if (one.op === 'take') {
      now += one.ahead
      slow = one.slow
      take()
    } else if (one.op === 'leave' && batches.length > 0) {
      const [batch = []] = batches.splice(one.batch % batches.length, 1)
      // In any order: some may leave early.
      const leaving = one.how[0] === 0 ? [...batch].reverse() : batch
      for (const [i, item] of leaving.entries()) {
        const how = one.how[i]!
        if (how === 2) {
          const limit = Math.ceil(batch.length / 2)
          limits.set(item, limit)
          queue.limit(item, limit)
        }
        if (how === 0) {
          limits.delete(item)
          queue.release(item)
        } else {
          waiting.push(item)
          queue.putBack(item)
        }
      }
    } else if (one.op === 'clear') {
      queue.clear()
      waiting = []
      batches = []
      limits.clear()
    }
    expect(queue.length).toBe(waiting.length)
  }

  // Everything comes out in the end, once.
  slow = false
  now = 1_000
  for (const item of batches.flat()) queue.release(item)
  batches = []
  while (waiting.length > 0) {
    const before = waiting.length
    take()
    expect(waiting.length).toBeLessThan(before)
    for (const item of batches.flat()) queue.release(item)
    batches = []
  }
  expect(queue.take(now)).toBeUndefined()
  expect(queue.nextDue()).toBeUndefined()
}

describe.each(['partition', 'key', 'unordered'] as const)('%s', (mode) => {
  test.each([false, true])('order, no key in two batches, bounds (due gate: %s)', (gated) => {
    fc.assert(
      fc.property(fc.array(op, { maxLength: 60 }), (ops) => check(mode, gated, ops)),
      { numRuns: 150 },
    )
  })
})

test('none whose number is not below the limit; what was cut for it does not linger', () => {
  const queue = new BatchQueue<BatchItem>({
    maxRecords: () => 10,
    maxBytes: 100,
    lingerMs: 1_000,
    clock: createManualClock(),
    isAlone: () => false,
    wake: () => undefined,
  })
  const items = [0, 1, 2].map((seq) => ({ seq, dueAt: 0, orderKey: 'a', bytes: 1 }))
  for (const item of items) queue.push(item)
  expect(queue.take(0, 0)).toBeUndefined()
  expect(queue.beyond).toBe(0)
  const first = queue.take(0, 2)!
  expect([first, ...queue.along(first)]).toEqual(items.slice(0, 2))
  expect(queue.beyond).toBe(2)
  queue.clear()
})

describe('with a linger', () => {
  function given(maxRecords = 3) {
    const clock = createManualClock()
    let wakes = 0
    const queue = new BatchQueue<BatchItem>({
      maxRecords: () => maxRecords,
      maxBytes: 100,
      lingerMs: 50,
      clock: clock,
      isAlone: () => false,
      wake: () => wakes++,
    })
    let seq = 0
    const push = (orderKey?: string, dueAt = 0): BatchItem => {
      const item = { seq: seq++, dueAt, orderKey, bytes: 1 }
      queue.push(item)
      return item
    }
    /** `now` is 0 where nothing is ever due, as a lane of a main topic asks. */
    const all = (now = 0): BatchItem[] => {
      const first = queue.take(now)
      return first === undefined ? [] : [first, ...queue.along(first)]
    }
    return { clock, queue, push, all, wakes: () => wakes }
  }

  test('fewer wait until the first has waited long enough, and the queue says when', async () => {
    const { clock, push, all, wakes } = given()
    const first = push('')
    expect(all()).toEqual([])
    await clock.advance(30)
    const second = push('')
    expect(all()).toEqual([])
    await clock.advance(19)
    expect(wakes()).toBe(0)
    expect(all()).toEqual([])
    await clock.advance(1)
    expect(wakes()).toBe(1)
    expect(all()).toEqual([first, second])
  })

  test('a full batch goes at once, and leaves no timer', async () => {
    const { clock, push, all, wakes } = given()
    const items = [push('a')]
    expect(all()).toEqual([])
    items.push(push('a'), push('b'))
    expect(all()).toEqual(items)
    await clock.advance(1_000)
    expect(wakes()).toBe(0)
  })

  test('what has waited behind a batch already waits no longer', async () => {
    const { clock, queue, push, all } = given(1)
    const first = push('a')
    expect(all()).toEqual([first])
    const second = push('a')
    await clock.advance(60)
    expect(all()).toEqual([])
    queue.release(first)
    expect(all()).toEqual([second])
  })

  test('a retry lingers from its due time on', async () => {
    const { clock, queue, push, all, wakes } = given()
    const due = clock.now() + 500
    const item = push('', due)
    expect(all(clock.now())).toEqual([])
    expect(queue.nextDue()).toBe(due)
    await clock.advance(520)
    expect(all(clock.now())).toEqual([])
    expect(queue.nextDue()).toBeUndefined()
    await clock.advance(30)
    expect(wakes()).toBe(1)
    expect(all(clock.now())).toEqual([item])
  })

  test('what is put back does not linger again; clear leaves no timer', async () => {
    const { clock, queue, push, all, wakes } = given()
    const item = push('')
    await clock.advance(50)
    expect(all()).toEqual([item])
    queue.putBack(item)
    expect(all()).toEqual([item])
    queue.release(item)
    push('')
    expect(all()).toEqual([])
    queue.clear()
    await clock.advance(1_000)
    expect(wakes()).toBe(0)
  })
})
