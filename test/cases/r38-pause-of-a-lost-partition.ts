/**
 * R38: a pause of a partition just lost.
 * Given a member whose handlers are slow, and will pause their partition and fail.
 * When a rebalance takes some of the partitions away before they do; when the function that resumes is called after the
 * loss, after the stop, or twice; when a record waits and its timer would fire after the stop.
 * Then nothing is thrown and no promise is left rejected, no consumer crashes, and the new owner handles what was taken.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import type { Call } from '../contract/scene'
import { putOnTier } from './on-tier'

/** What the process is told of promises that nobody handled, while `work` runs. */
async function unhandledIn(work: () => Promise<void>): Promise<unknown[]> {
  const seen: unknown[] = []
  const note = (reason: unknown): void => void seen.push(reason)
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
  try {
    await work()
    // Node tells of a rejection only once the microtasks are done.
    await new Promise<void>((resolve) => setImmediate(resolve))
  } finally {
    process.off('unhandledRejection', note)
    process.off('uncaughtException', note)
  }
  return seen
}

export function r38(given: Given): void {
  it('R38 P7: a handler pauses and throws on a partition that is gone meanwhile', async () => {
    const scene = await given.scene({ partitions: 4 })
    const gate = scene.gate()
    const resumes: (() => void)[] = []
    const act = async ({ member, payload }: Call): Promise<void> => {
      if (member !== 0 || gate.isOpen) return
      await gate.wait()
      resumes.push(payload.pause())
      throw new Error('slow, and failing')
    }
    const unhandled = await unhandledIn(async () => {
      const first = await scene.join(act)
      for (const partition of [0, 1, 2, 3]) await scene.produce(['a', 'b'], partition)
      await scene.untilCalls(4)
      const second = await scene.join(act)
      await scene.untilShared([first, second], 4)
      const moved = scene.partitionsOf(second)
      await scene.untilCalls(2 * moved.length, ({ member }) => member === 1)
      gate.open()
      await given.stage().until(() => resumes.length === 4, 'all four have paused and thrown')
      for (const resume of resumes) resume()
      await scene.untilDone()
      await first.stop()
      for (const resume of resumes) resume()
      expect(first.hooks.counts.crashed + second.hooks.counts.crashed).toBe(0)
      const states = second.consumer.health().groups.flatMap(({ partitions }) => partitions.map(({ state }) => state))
      expect(states).not.toContain('paused')
    })
    expect(unhandled).toEqual([])
    scene.expectNoStepBack()
  })

  it('R38 P9: a timer, a resume and a pause after the stop do nothing', async () => {
    const scene = await given.scene({ schedule: ['1s'] })
    const unhandled = await unhandledIn(async () => {
      let resume: (() => void) | undefined
      let pause: (() => () => void) | undefined
      const first = await scene.join(({ value, payload }) => {
        if (value !== 'pauses') return
        pause = () => payload.pause()
        resume = payload.pause()
      })
      await scene.produce(['pauses', 'behind'])
      await scene.untilCalls(1)
      await putOnTier(scene, '1s', [{ value: 'waits', dueIn: 500 }])
      await given
        .stage()
        .until(() => first.consumer.health().groups[1]?.partitions[0]?.state === 'waiting', 'a record waits')
      await first.stop()
      resume!()
      pause!()()
      await given.stage().during(given.stage().takes(700))
      expect(scene.values()).toEqual(['pauses'])
      await scene.join()
      await scene.untilDone()
    })
    expect(unhandled).toEqual([])
    expect(scene.values().sort()).toEqual(['behind', 'pauses', 'waits'])
  })
}
