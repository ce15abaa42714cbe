/**
 * R11: results out of order.
 * Given ten records of one partition, all in their handlers at once.
 * When they finish in the order 9, 3, 7, 0, 1, 2, …, and when the process dies after any number of them.
 * Then the committed offset is always the lowest unfinished one, and after the death everything unfinished comes again,
 * once, and nothing below that offset.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { numbered } from './numbered'

const ORDER = [9, 3, 7, 0, 1, 2, 5, 4, 8, 6]

const lowestUnfinished = (finished: readonly number[]): number => {
  let lowest = 0
  while (finished.includes(lowest)) lowest++
  return lowest
}

export function r11(given: Given): void {
  it('R11 P1: whatever the order of completion, the commit is the lowest unfinished', async () => {
    const scene = await given.scene({ partitions: 2 })
    const gates = numbered(10).map(() => scene.gate())
    await scene.join(({ value }) => gates[Number(value)]?.wait(), { ordering: 'unordered' })
    await scene.produce(numbered(10))
    await scene.untilCalls(10)
    for (const [at, n] of ORDER.entries()) {
      gates[n]?.open()
      await scene.witness(1)
      const lowest = lowestUnfinished(ORDER.slice(0, at + 1))
      expect((await scene.committed()).get(0), `after ${n}`).toBe(BigInt(lowest))
    }
    scene.expectNoStepBack()
  })

  it('R11 P1: over three keys in their own order, the commit is the lowest unfinished of all', async () => {
    const scene = await given.scene({ partitions: 2 })
    const gates = numbered(10).map(() => scene.gate())
    await scene.join(({ value }) => gates[Number(value)]?.wait(), { ordering: 'key' })
    await scene.produce(numbered(10, 3))
    // Keys: 0 3 6 9, 1 4 7, 2 5 8.
    const order = [2, 5, 8, 1, 0, 3, 4, 7, 6, 9]
    for (const [at, n] of order.entries()) {
      await scene.untilCalls(1, ({ value }) => value === String(n))
      gates[n]?.open()
      await scene.witness(1)
      const lowest = lowestUnfinished(order.slice(0, at + 1))
      expect((await scene.committed()).get(0), `after ${n}`).toBe(BigInt(lowest))
    }
  })

  it('R11 P1: after a crash at any step everything unfinished comes again', async () => {
    const steps = given.stage().kind === 'fake' ? ORDER.map((_, at) => at) : [4]
    for (const step of steps) {
      const scene = await given.scene({ partitions: 2 })
      const gates = numbered(10).map(() => scene.gate())
      const first = await scene.join(({ member, value }) => (member === 0 ? gates[Number(value)]?.wait() : undefined), {
        ordering: 'unordered',
      })
      await scene.produce(numbered(10))
      await scene.untilCalls(10)
      const finished = ORDER.slice(0, step)
      for (const n of finished) gates[n]?.open()
      await scene.witness(1)
      const lowest = lowestUnfinished(finished)
      expect((await scene.committed()).get(0), `after ${step}`).toBe(BigInt(lowest))
      await given.stage().during(first.faults.kill())
      await scene.join(undefined, { ordering: 'unordered' })
      await scene.untilDone()
      const again = scene.calls
        .filter(({ member, partition }) => member === 1 && partition === 0)
        .map(({ value }) => Number(value))
      const unfinished = numbered(10).flatMap((_, n) => (finished.includes(n) ? [] : [n]))
      expect(again, `after ${step}`).toEqual(expect.arrayContaining(unfinished))
      // What had finished beyond the lowest unfinished one may come again; what stands below it does not.
      expect(Math.min(...again), `after ${step}`).toBe(lowest)
      expect(new Set(again).size, `after ${step}`).toBe(again.length)
    }
  })
}
