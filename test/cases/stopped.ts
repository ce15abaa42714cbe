import { expect } from 'vitest'
import type { Scene } from '../contract/scene'

/** No group of the scene has a member. */
export async function expectGone(scene: Scene): Promise<void> {
  for (const group of [scene.group, ...scene.schedule.map((delay) => scene.retryGroup(delay))]) {
    expect(await scene.stage.members(group), `members of ${group}`).toEqual([])
  }
}

/**
 * Another consumer handles what is left, so that every record was handled; the stopped one, which by then would have
 * handled some if anything of it were alive, has not been called again. Leaves no member behind.
 */
export async function expectRestHandled(
  scene: Scene,
  stopped: number,
  callsAtStop: number,
  values: readonly string[],
): Promise<void> {
  const next = await scene.join()
  await scene.untilDone()
  expect(scene.calls.filter(({ member }) => member === stopped)).toHaveLength(callsAtStop)
  expect(new Set(scene.values())).toEqual(new Set(values))
  await next.stop()
  await expectGone(scene)
}
