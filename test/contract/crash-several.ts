/** Several records that each take the process down: every one is found out, and the number of deaths has a bound. */
import { describe, expect, it } from 'vitest'
import { numbered, supervise } from './crash-loop'
import type { Given } from './promises'
import { header } from './scene'

const CRASH_LIMIT = 3

export function crashSeveralPromises(given: Given): void {
  const places = [
    ['three in one partition', [1, 1, 1]],
    ['one in each of three partitions', [0, 1, 2]],
    ['two side by side, and one elsewhere', [0, 0, 2]],
  ] as const

  describe('crash loops: several deadly records', () => {
    for (const [what, partitions] of places) {
      for (const ordering of ['partition', 'unordered'] as const) {
        it(`${ordering}, ${what}: one dead letter each, and no more deaths than crashLimit for each of them`, async () => {
          const scene = await given.scene({ partitions: 3 })
          for (const partition of [0, 1, 2]) await scene.produce(numbered(0, 8), partition)
          const deadly = partitions.map((_, n) => `deadly ${n}`)
          for (const [n, partition] of partitions.entries()) await scene.produce([deadly[n]!], partition)
          for (const partition of [0, 1, 2]) await scene.produce(numbered(8, 16), partition)
          const deaths = await supervise(
            given,
            scene,
            { ordering, concurrency: 16, crashLimit: CRASH_LIMIT },
            ({ value }) => value !== null && deadly.includes(value),
            async () => (await scene.dead()).length >= deadly.length,
          )
          await scene.untilDone()
          const dead = await scene.dead()
          expect(dead.map(({ value }) => String(value)).sort()).toEqual(deadly)
          expect(new Set(dead.map((one) => header(one, 'x-failure-reason')))).toEqual(new Set(['crash-loop']))
          // While one of them is found out, the others wait.
          expect(deaths).toBeLessThanOrEqual(CRASH_LIMIT * deadly.length)
          for (const one of deadly) {
            expect(scene.calls.filter(({ value }) => value === one).length, one).toBeLessThanOrEqual(CRASH_LIMIT)
          }
          const handled = scene.calls.filter(({ value, endedAt }) => !deadly.includes(value!) && endedAt !== undefined)
          expect(new Set(handled.map(({ partition, value }) => `${partition} ${value}`)).size).toBe(48)
          scene.expectNoStepBack()
        })
      }
    }
  })
}
