import { describe, expect, it } from 'vitest'
import { NonRetryableError } from '../../src'
import type { Given } from './promises'

/** P1, the half about offsets: committed is what everything below is settled of. */
export function frontierPromises(given: Given): void {
  describe('P1 nothing lost: offsets', () => {
    it('a crash between copy and commit: the copy stands, the record comes again', async () => {
      const scene = await given.scene()
      const fails = (): never => {
        throw new NonRetryableError('a bad order')
      }
      const first = await scene.join(fails)
      first.faults.commit('reject')
      await scene.produce(['a', 'b', 'c'])
      await scene.untilDead(3)
      await given.stage().during(first.faults.kill())
      await scene.join(fails)
      await scene.untilDone()
      const dead = (await scene.dead()).map(({ value }) => String(value))
      expect(dead.sort()).toEqual(['a', 'a', 'b', 'b', 'c', 'c'])
      expect(first.hooks.counts.commitFailed).toBeGreaterThanOrEqual(1)
    })

    it('a refused commit is chosen anew, and one whose answer was lost goes no step back', async () => {
      const scene = await given.scene()
      const member = await scene.join()
      const faults = (['reject', 'answer-lost'] as const).map((fault) =>
        member.faults.commit(fault, { topic: scene.topic, times: 2 }),
      )
      await scene.produce(['a', 'b', 'c'])
      await scene.untilDone()
      await given.stage().until(() => faults.every(({ hits }) => hits === 2), 'all four faults met')
      expect(scene.values()).toEqual(['a', 'b', 'c'])
      scene.expectNoStepBack()
    })
  })
}
