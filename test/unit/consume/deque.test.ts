import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Deque } from '../../../src/consume/deque'
import { DueHeap, type Due } from '../../../src/consume/due-heap'

type Op = ['push', number] | ['shift'] | ['clear']

const ops: fc.Arbitrary<Op[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.tuple(fc.constant('push' as const), fc.nat({ max: 9 })) },
    { weight: 4, arbitrary: fc.constant<Op>(['shift']) },
    { weight: 1, arbitrary: fc.constant<Op>(['clear']) },
  ),
  { maxLength: 60 },
)

test('a deque does what an array does', () => {
  fc.assert(
    fc.property(ops, (list) => {
      const deque = new Deque<number>()
      let model: number[] = []
      for (const [op, value] of list) {
        if (op === 'push') {
          deque.push(value)
          model.push(value)
        } else if (op === 'shift') expect(deque.shift()).toBe(model.shift())
        else {
          deque.clear()
          model = []
        }
        expect([deque.length, deque.first, deque.last]).toEqual([model.length, model[0], model.at(-1)])
        expect([...deque]).toEqual(model)
      }
    }),
  )
})

test('a long deque keeps its order over the cuts of its used half', () => {
  const deque = new Deque<number>()
  let next = 0
  let expected = 0
  for (let round = 0; round < 20; round++) {
    for (let i = 0; i < 700; i++) deque.push(next++)
    for (let i = 0; i < 600; i++) expect(deque.shift()).toBe(expected++)
    expect([deque.first, deque.last, deque.length]).toEqual([expected, next - 1, next - expected])
  }
  while (deque.length > 0) expect(deque.shift()).toBe(expected++)
  expect([deque.shift(), deque.first, deque.last, next]).toEqual([undefined, undefined, undefined, expected])
})

test('a due heap gives out what is due first, and of equals what came first', () => {
  fc.assert(
    fc.property(ops, (list) => {
      const heap = new DueHeap<Due>()
      let model: Due[] = []
      let seq = 0
      for (const [op, dueAt] of list) {
        if (op === 'push') {
          const item = { dueAt, seq: seq++ }
          heap.push(item)
          model.push(item)
          model.sort((a, b) => a.dueAt - b.dueAt || a.seq - b.seq)
        } else if (op === 'shift') expect(heap.shift()).toBe(model.shift())
        else {
          heap.clear()
          model = []
        }
        expect([heap.length, heap.first]).toEqual([model.length, model[0]])
      }
      while (model.length > 0) expect(heap.shift()).toBe(model.shift())
      expect(heap.shift()).toBeUndefined()
    }),
  )
})
