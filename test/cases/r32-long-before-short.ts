/**
 * R32: a long wait in front of a short one.
 * Given records of one tier whose due times do not rise: a skewed clock, a forged header, an override.
 * When the first is due later than those behind it, or later than its tier can ask for, and nothing else ever comes.
 * Then no order: what is due first goes first; in order: the later one holds up the others, at most for the tier's delay,
 * since a due time beyond that is cut down to it and counted; and the timer alone wakes them.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { putOnTier } from './on-tier'

const THREE = [900, 300, 600].map((dueIn) => ({ value: `+${dueIn}`, dueIn }))
const HOUR = 3_600_000

export function r32(given: Given): void {
  it('R32 P2: what is due first goes first, where the order allows it', async () => {
    const scene = await given.scene({ schedule: ['1s'] })
    await putOnTier(scene, '1s', THREE)
    await scene.join(undefined, { ordering: 'unordered' })
    await scene.untilDone()
    expect(scene.values()).toEqual(['+300', '+600', '+900'])
    scene.expectNeverEarly()
  })

  it('R32 P2: in order, a record that is due earlier waits for the one before it', async () => {
    const scene = await given.scene({ schedule: ['1s'] })
    await putOnTier(scene, '1s', THREE)
    await scene.join()
    await scene.untilDone()
    expect(scene.values()).toEqual(['+900', '+300', '+600'])
    scene.expectNeverEarly()
  })

  it('R32 P4: a due time beyond its tier is cut down to it and counted, and nothing but the timer wakes it', async () => {
    const scene = await given.scene({ schedule: ['1s'] })
    const before = given.stage().now()
    await putOnTier(scene, '1s', [
      { value: 'in six hours', dueIn: 6 * HOUR },
      { value: 'in a second', dueIn: 1_000 },
    ])
    const { hooks } = await scene.join()
    await given.stage().until(() => scene.calls.length === 2, 'both are handled')
    expect(scene.values()).toEqual(['in six hours', 'in a second'])
    expect(scene.calls[1]!.startedAt - before).toBeLessThanOrEqual(given.stage().kind === 'fake' ? 1_100 : 8_000)
    expect(hooks.events('envelope').flatMap(({ problems }) => problems)).toEqual([
      expect.stringMatching(/x-due-at/) as string,
    ])
  })
}
