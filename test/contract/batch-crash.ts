import { describe, expect, it } from 'vitest'
import { numbered } from './batch-failures'
import { Batching, type BatchSeen } from './batching'
import type { Given } from './promises'
import { header } from './scene'

/** A batch that takes its process down: the record that does is found, and no other of the batch is dead-lettered for it. */
export function batchCrashes(given: Given): void {
  describe('batch: crash loops', () => {
    it('a deadly record among a hundred is a dead letter after three deaths, and no other is', async () => {
      const scene = await given.scene()
      const batching = new Batching(scene)
      const gate = scene.gate()
      const dead = new Set<number>()
      await scene.produce([...numbered(20), 'deadly', ...numbered(40, 20)])
      const act = (call: BatchSeen): unknown => {
        if (dead.has(call.member)) return gate.wait()
        if (!call.values.includes('deadly')) return undefined
        dead.add(call.member)
        void scene.members[call.member]!.faults.kill()
        return gate.wait()
      }
      for (let done = false; !done;) {
        expect(dead.size, 'processes that died').toBeLessThan(6)
        const member = await batching.join(act)
        const isDead = (): boolean => dead.has(scene.members.indexOf(member))
        await given
          .stage()
          .until(async () => isDead() || (done = (await scene.dead()).length > 0), 'a death, or an end')
        if (isDead()) await given.stage().during(member.faults.kill())
      }
      await scene.untilDone()
      const letters = await scene.dead()
      expect(letters.map(({ value }) => String(value))).toEqual(['deadly'])
      expect(header(letters[0]!, 'x-failure-reason')).toBe('crash-loop')
      expect(dead.size).toBe(3)
      // What may have been the cause runs alone.
      const [first, ...after] = batching.seen.filter(({ values }) => values.includes('deadly'))
      expect(first!.values.length).toBeGreaterThan(1)
      expect(after.map(({ values }) => values.length)).toEqual([1, 1])
      const handled = new Set(batching.seen.filter(({ ended }) => ended).flatMap(({ values }) => values))
      for (const value of numbered(40)) expect(handled).toContain(value)
      scene.expectNoStepBack()
    })
  })
}
