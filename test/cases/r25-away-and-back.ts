/**
 * R25: paused, away, back, and never resumed.
 * Given records that wait on a retry topic for a few seconds, in the memory of one member.
 * When another member joins, takes some of the partitions, and leaves again before they are due.
 * Then each is handled once, not early, and no later than due and a little, on whichever member owns its partition then.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import type { Call } from '../contract/scene'

export function r25(given: Given): void {
  it('R25 P7: a retry that waits while its partition goes and comes back is handled once, and on time', async () => {
    const scene = await given.scene({ partitions: 2, schedule: ['3s'] })
    const act = ({ attempt }: Call): void => {
      if (attempt === 1) throw new RetryableError('the shop is closed')
    }
    const first = await scene.join(act)
    for (const partition of [0, 1]) await scene.produce(['a', 'b'], partition)
    const waiting = (): number =>
      first.consumer.health().groups[1]?.partitions.reduce((sum, { held }) => sum + held, 0) ?? 0
    await given.stage().until(() => waiting() === 4, 'all four wait in memory')
    const second = await scene.join(act)
    await given.stage().until(() => waiting() < 4, 'some of them went to the other member')
    await second.stop()
    expect(scene.calls.filter(({ attempt }) => attempt === 2)).toEqual([])
    await scene.untilDone()
    const retries = scene.calls.filter(({ attempt }) => attempt === 2)
    expect(retries.map(({ partition, value }) => `${partition} ${value}`).sort()).toEqual(['0 a', '0 b', '1 a', '1 b'])
    scene.expectNeverEarly()
    for (const { startedAt, dueAt } of retries) expect(startedAt - dueAt!).toBeLessThanOrEqual(2_000)
  })
}
