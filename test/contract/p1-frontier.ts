import { describe, expect, it } from 'vitest'
import { NonRetryableError } from '../../src'
import type { Given } from './promises'

const numbered = (count: number): { key: string; value: string }[] =>
  Array.from({ length: count }, (_, n) => ({ key: `k${n}`, value: String(n) }))

/** P1, the half about offsets: committed is what everything below is settled of. */
export function frontierPromises(given: Given): void {
  describe('P1 nothing lost: offsets', () => {
    it('R06: 5 waits for its copy, 6 to 9 succeed: the commit stays at 5, then goes to 10', async () => {
      const scene = await given.scene({ partitions: 2 })
      const answer = scene.gate()
      const member = await scene.join(
        ({ value }) => {
          if (value === '5') throw new NonRetryableError('a bad order')
        },
        { ordering: 'key' },
      )
      member.faults.publish(answer.wait(), { topic: scene.dlq, times: 1 })
      await scene.produce(numbered(10))
      await scene.untilCalls(10)
      await scene.witness(1)
      expect((await scene.committed()).get(0)).toBe(5n)
      answer.open()
      await scene.untilDone()
      const offsets = scene.commits().filter(({ partition }) => partition === 0)
      expect(offsets.map(({ offset }) => offset).filter((offset) => offset > 5n)).toEqual([10n])
      expect(await scene.dead()).toHaveLength(1)
      scene.expectNoStepBack()
    })

    it('R12: a dead letter does not step over an earlier record that still runs', async () => {
      const scene = await given.scene({ partitions: 2 })
      const slow = scene.gate()
      await scene.join(
        async ({ value }) => {
          if (value === '1') await slow.wait()
          if (value === '2') throw new NonRetryableError('a bad order')
        },
        { ordering: 'key' },
      )
      await scene.produce(numbered(3))
      await scene.untilDead(1)
      await scene.witness(1)
      expect((await scene.committed()).get(0)).toBe(1n)
      slow.open()
      await scene.untilDone()
    })

    it('R11: whatever the order of completion, the commit is the lowest unfinished', async () => {
      const scene = await given.scene({ partitions: 2 })
      const gates = numbered(10).map(() => scene.gate())
      await scene.join(({ value }) => gates[Number(value)]?.wait(), { ordering: 'unordered' })
      await scene.produce(numbered(10))
      await scene.untilCalls(10)
      const open = new Set(gates.keys())
      for (const n of [9, 3, 7, 0, 1, 2, 5, 4, 8, 6]) {
        gates[n]?.open()
        open.delete(n)
        await scene.witness(1)
        expect((await scene.committed()).get(0), `after ${n}`).toBe(BigInt(Math.min(10, ...open)))
      }
      scene.expectNoStepBack()
    })

    it('R11: after a crash in the middle everything unfinished comes again', async () => {
      const scene = await given.scene({ partitions: 2 })
      const gates = numbered(10).map(() => scene.gate())
      const first = await scene.join(({ member, value }) => (member === 0 ? gates[Number(value)]?.wait() : undefined), {
        ordering: 'unordered',
      })
      await scene.produce(numbered(10))
      await scene.untilCalls(10)
      for (const n of [9, 3, 0, 1]) gates[n]?.open()
      await scene.witness(1)
      expect((await scene.committed()).get(0)).toBe(2n)
      await given.stage().during(first.faults.kill())
      await scene.join(undefined, { ordering: 'unordered' })
      await scene.untilDone()
      const again = scene.calls
        .filter(({ member, partition }) => member === 1 && partition === 0)
        .map(({ value }) => value)
      expect(again.sort()).toEqual(['2', '3', '4', '5', '6', '7', '8', '9'])
    })

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
      const faults = [member.faults.commit('reject', { times: 2 }), member.faults.commit('answer-lost', { times: 2 })]
      await scene.produce(['a', 'b', 'c'])
      await scene.untilDone()
      await given.stage().until(() => faults.every(({ hits }) => hits === 2), 'all four faults met')
      expect(scene.values()).toEqual(['a', 'b', 'c'])
      scene.expectNoStepBack()
    })
  })
}
