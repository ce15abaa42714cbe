/**
 * R29: a heavy record blocks its neighbours.
 * Given a handler that does not come back, for a record of the main topic or of a retry topic.
 * When records come on other partitions, which the same broker leads.
 * Then they are handled and committed meanwhile, and records behind it on its own partition wait only where the order
 * says so.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { putOnTier } from './on-tier'

export function r29(given: Given): void {
  it.each(['partition', 'key', 'unordered'] as const)(
    'R29 P5: a slow record and other partitions (%s)',
    async (ordering) => {
      const scene = await given.scene({ partitions: 4 })
      const slow = scene.gate()
      await scene.join(({ value }) => value === 'slow' && slow.wait(), { ordering })
      await scene.produce([
        { key: 'k', value: 'slow' },
        { key: 'k', value: 'behind' },
      ])
      for (const partition of [1, 2, 3]) await scene.produce([`on ${partition}`], partition)
      await scene.untilCalls(3, ({ partition }) => partition > 0)
      await scene.witness(1)
      expect(slow.isOpen).toBe(false)
      expect(scene.values().includes('behind')).toBe(ordering === 'unordered')
      slow.open()
      await scene.untilDone()
    },
  )

  it('R29 P5: a slow record with more behind it than memory holds, and other partitions', async () => {
    const scene = await given.scene({ partitions: 4 })
    const slow = scene.gate()
    const { hooks } = await scene.join(({ value }) => value === 'slow' && slow.wait(), { maxBufferedRecords: 40 })
    await scene.produce(['slow', ...Array.from({ length: 50 }, () => 'behind')])
    await given.stage().until(() => hooks.events('lane').some(({ full }) => full), 'its lane is full')
    await scene.produce(Array.from({ length: 50 }, () => 'more'))
    const before = given.stage().now()
    for (let round = 0; round < 5; round++) {
      for (const partition of [1, 2, 3]) await scene.produce(['now'], partition)
      await scene.untilCalls(3 * (round + 1), ({ value }) => value === 'now')
    }
    if (given.stage().kind === 'fake') expect(given.stage().now() - before).toBeLessThanOrEqual(1_000)
    expect(slow.isOpen).toBe(false)
    slow.open()
    await scene.untilDone()
    expect(scene.calls).toHaveLength(116)
  })

  it('R29 P5: a slow retry, and the main topic and other partitions of its tier', async () => {
    const scene = await given.scene({ partitions: 2 })
    const slow = scene.gate()
    await scene.join(({ value }) => value === 'slow' && slow.wait(), { concurrency: 2 })
    await putOnTier(scene, '200ms', [{ value: 'slow', dueIn: 0 }])
    await scene.untilCalls(1)
    for (const partition of [0, 1]) await scene.produce([`main ${partition}`], partition)
    await putOnTier(scene, '200ms', [{ value: 'tier 1', dueIn: 0 }], 1)
    await scene.untilCalls(4)
    await scene.witness(0)
    expect(slow.isOpen).toBe(false)
    expect(
      scene
        .values()
        .filter((value) => value !== 'witness')
        .sort(),
    ).toEqual(['main 0', 'main 1', 'slow', 'tier 1'])
    slow.open()
    await scene.untilDone()
  })
}
