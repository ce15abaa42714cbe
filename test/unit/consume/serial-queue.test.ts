import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Intake, serialQueue, takeBatch } from '../../../src/consume/intake'
import type { OffsetRange } from '../../../src/consume/done-beyond'
import { type Entry, Lane } from '../../../src/consume/lane'
import type { SerialQueue } from '../../../src/consume/serial-queue'
import type { Message } from '../../../src/record'
import { createTestClock } from '../../helpers/test-clock'
import { message, recorder } from './given'

function serialLane(done: readonly OffsetRange[] = []) {
  const { emitter, of } = recorder(createTestClock())
  const intake = { emitter, settled: (on, entry) => on.settle(entry) } as Intake
  const lane = new Lane('orders', 0, 'main', false, undefined, (made) => serialQueue(intake, made))
  lane.open(0n, undefined, done)
  const take = (messages: Message[], next: bigint): void => {
    const room = { records: Infinity, bytes: Infinity, of: Infinity }
    expect(takeBatch(intake, lane, { messages, lastOffset: next - 1n }, room)).toBe(next)
  }
  return { lane, queue: lane.queue as SerialQueue<Entry>, take, of }
}

/** What may happen to a lane: a batch with gaps, a passed stretch, and what a handler does. */
const step = fc.oneof(
  fc.record({
    kind: fc.constant('batch' as const),
    gaps: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 5 }),
    after: fc.integer({ min: 0, max: 3 }),
  }),
  fc.record({ kind: fc.constant('passed' as const), by: fc.integer({ min: 1, max: 5 }) }),
  fc.constantFrom({ kind: 'take' as const }, { kind: 'release' as const }, { kind: 'again' as const }),
  fc.record({ kind: fc.constant('settle' as const), which: fc.nat() }),
)

describe('P1, P6: a lane that makes its entries as they are taken', () => {
  test('property: one at a time, in order, each once; every offset below the frontier is settled or holds no record', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { lane, queue, take } = serialLane()
        const unsettled = new Set<bigint>()
        const waiting: bigint[] = []
        const ended: Entry[] = []
        let next = 0n
        let running: Entry | undefined
        let before = 0n
        for (const now of steps) {
          if (now.kind === 'batch') {
            const offsets = now.gaps.map((gap) => (next += BigInt(gap) + 1n) - 1n)
            next += BigInt(now.after)
            take(
              offsets.map((offset) => message(offset)),
              next,
            )
            for (const offset of offsets) unsettled.add(offset)
            waiting.push(...offsets)
          } else if (now.kind === 'passed') {
            next += BigInt(now.by)
            if (!queue.extend(next)) lane.tracker.pass(next)
          } else if (now.kind === 'take') {
            const taken = queue.take()
            expect(taken === undefined).toBe(running !== undefined || waiting.length === 0)
            if (taken) {
              expect(BigInt(taken.offset)).toBe(waiting.shift())
              running = taken
            }
          } else if (now.kind === 'release' && running) {
            ended.push(running)
            queue.release()
            running = undefined
          } else if (now.kind === 'again' && running) {
            waiting.unshift(BigInt(running.offset))
            queue.putBack(running)
            running = undefined
          } else if (now.kind === 'settle' && ended.length > 0) {
            const [entry] = ended.splice(now.which % ended.length, 1)
            lane.settle(entry!)
            unsettled.delete(BigInt(entry!.offset))
          }
          const { frontier } = lane.tracker
          expect(frontier >= before).toBe(true)
          before = frontier
          for (const offset of unsettled) expect(offset >= frontier).toBe(true)
          expect(queue.length).toBe(waiting.length)
          expect(lane.held).toBe(unsettled.size)
          if (unsettled.size === 0) {
            expect(frontier).toBe(next)
            expect(lane.bytes).toBeCloseTo(0)
          }
        }
      }),
      { numRuns: 500 },
    )
  })

  test('a closed lane has dropped what had not started', () => {
    const { lane, queue, take } = serialLane()
    take(
      [0, 1, 2].map((offset) => message(offset)),
      3n,
    )
    queue.take()
    expect(lane.close()).toBe(2)
    expect(queue.take()).toBeUndefined()
    expect(queue.nextDue()).toBeUndefined()
  })

  test('a record that a replay has set is told apart', () => {
    const { queue, take } = serialLane()
    const replay = { ...message(1), headers: { 'x-replayed-from-dlq': Buffer.from('true') } }
    take([message(0)], 1n)
    take([replay], 2n)
    expect(queue.take()?.replayed).toBe(false)
    queue.release()
    expect(queue.take()?.replayed).toBe(true)
  })

  test('what was done before is passed over, and still counts for the frontier and for what is beyond it', () => {
    const { lane, queue, take, of } = serialLane([
      { from: 1n, to: 3n },
      { from: 4n, to: 6n },
    ])
    take(
      [0, 1, 2, 3, 4, 5].map((offset) => message(offset)),
      6n,
    )
    const first = queue.take()!
    expect(first.offset).toBe('0')
    queue.release()
    const second = queue.take()!
    expect(second.offset).toBe('3')
    expect(lane.tracker.beyond()).toEqual([{ from: 1n, to: 3n }])
    lane.settle(first)
    expect(lane.tracker.frontier).toBe(3n)
    queue.release()
    expect(queue.take()).toBeUndefined()
    expect(lane.tracker.beyond()).toEqual([{ from: 4n, to: 6n }])
    lane.settle(second)
    expect([lane.tracker.frontier, lane.held, queue.length]).toEqual([6n, 0, 0])
    expect(of('skipped')).toMatchObject(['1', '2', '4', '5'].map((offset) => ({ offset, why: 'done' })))
  })
})
