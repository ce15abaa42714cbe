/**
 * R37: a retry pauses the whole consumer.
 * Given four partitions of a retry topic, of which one begins with a record that is not due yet; and a main topic of
 * four partitions, of which one is paused by its handler.
 * When records come on the other three.
 * Then they keep flowing, and are committed, while the one waits.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { putOnTier } from './on-tier'

export function r37(given: Given): void {
  it('R37 P5: one partition of a tier waits, the other three flow', async () => {
    const scene = await given.scene({ partitions: 4, schedule: ['3s'] })
    await putOnTier(scene, '3s', [
      { value: 'later', dueIn: 2_500 },
      { value: 'behind', dueIn: 0 },
    ])
    await scene.join()
    for (let round = 0; round < 3; round++) {
      for (const partition of [1, 2, 3]) await putOnTier(scene, '3s', [{ value: 'now', dueIn: 0 }], partition)
      await scene.untilCalls(3 * (round + 1))
    }
    const committed = async (): Promise<bigint[]> => [
      ...(await scene.committed(scene.retry('3s'), scene.retryGroup('3s'))).values(),
    ]
    await given
      .stage()
      .until(async () => (await committed()).slice(1).every((at) => at === 3n), 'the three are committed')
    expect((await committed())[0]).toBeLessThanOrEqual(0n)
    expect(new Set(scene.values())).toEqual(new Set(['now']))
    await scene.untilDone()
    expect(scene.values().slice(9)).toEqual(['later', 'behind'])
    scene.expectNeverEarly()
  })

  it('R37 P5: a handler pauses its partition, the other three flow', async () => {
    const scene = await given.scene({ partitions: 4 })
    let resume: (() => void) | undefined
    await scene.join(({ value, payload }) => {
      if (value === 'pauses') resume = payload.pause()
    })
    await scene.produce(['pauses', 'behind'])
    await scene.untilCalls(1)
    for (const partition of [1, 2, 3]) await scene.produce(['a', 'b', 'c'], partition)
    await scene.untilCalls(10)
    await scene.witness(1)
    expect(scene.values()).not.toContain('behind')
    resume!()
    await scene.untilDone()
    expect(scene.values()).toContain('behind')
  })
}
