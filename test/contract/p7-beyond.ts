import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src'
import { unpackDone } from '../../src/consume/done-beyond'
import type { Given } from './promises'
import type { Call, Member, Scene } from './scene'

const numbered = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, n) => `r${from + n}`)

/** P7, the half about what is done beyond the committed offset when a partition goes to somebody else. */
export function beyondPromises(given: Given): void {
  const seen = (scene: Scene, member: number): (string | null)[] =>
    scene.calls.filter((call) => call.member === member).map(({ value }) => value)

  /** Waits until the broker has been told of so many records that are done beyond the offset. */
  const untilSaid = (member: Member, topic: string, count: bigint): Promise<void> => {
    const said = (): bigint => {
      const last = member.faults.commits.filter((commit) => commit.topic === topic).at(-1)
      const ranges = last ? (unpackDone(last.offset, last.metadata) ?? []) : []
      return ranges.reduce((sum, { from, to }) => sum + (to - from), 0n)
    }
    return given.stage().until(
      () => said() === count,
      () => `${count} records are said to be done beyond the offset, not ${said()}`,
    )
  }

  describe('P7 rebalance-safe: what is done beyond the committed offset', () => {
    it('a killed member: the next one handles only what was in flight', async () => {
      const scene = await given.scene()
      const gate = scene.gate()
      const options = { ordering: 'unordered', concurrency: 4 }
      const act = ({ member, offset }: Call): unknown => member === 0 && ['0', '7'].includes(offset) && gate.wait()
      const first = await scene.join(act, options)
      await scene.produce(numbered(0, 30))
      await scene.untilCalls(30)
      await untilSaid(first, scene.topic, 28n)
      expect((await scene.committed()).get(0)).toBe(0n)
      await given.stage().during(first.faults.kill())
      await scene.join(act, options)
      await scene.untilDone()
      expect(seen(scene, 1).sort()).toEqual(['r0', 'r7'])
      scene.expectNoStepBack()
    })

    it('by key: what waited behind the stuck record is handled, what had another key is not', async () => {
      const scene = await given.scene()
      const gate = scene.gate()
      const options = { ordering: 'key', concurrency: 4 }
      const act = ({ member, offset }: Call): unknown => member === 0 && offset === '0' && gate.wait()
      const first = await scene.join(act, options)
      await scene.produce(numbered(0, 30).map((value, n) => ({ key: n % 3 === 0 ? 'stuck' : `k${n}`, value })))
      await scene.untilCalls(21)
      await untilSaid(first, scene.topic, 20n)
      await given.stage().during(first.faults.kill())
      await scene.join(act, options)
      await scene.untilDone()
      expect(seen(scene, 1)).toEqual(numbered(0, 30).filter((_, n) => n % 3 === 0))
    })

    it('a partition that moves: the new owner handles only what was in flight', async () => {
      const scene = await given.scene({ partitions: 2 })
      const gate = scene.gate()
      const options = { ordering: 'unordered', concurrency: 8 }
      const act = ({ member, offset }: Call): unknown => member === 0 && offset === '2' && gate.wait()
      const first = await scene.join(act, options)
      for (const partition of [0, 1]) await scene.produce(numbered(0, 10), partition)
      await scene.untilCalls(20)
      const second = await scene.join(act, options)
      await scene.untilShared([first, second], 2)
      gate.open()
      await scene.untilDone()
      expect(seen(scene, 1)).toEqual(['r2'])
      scene.expectNoStepBack()
    })

    it('a stop that gives a handler up: the next start handles that record and no other', async () => {
      const scene = await given.scene()
      const gate = scene.gate()
      const options = { ordering: 'unordered', concurrency: 4 }
      const act = ({ member, offset }: Call): unknown => member === 0 && offset === '3' && gate.wait()
      const first = await scene.join(act, options)
      await scene.produce(numbered(0, 20))
      await scene.untilCalls(20)
      await given.stage().during(first.consumer.stop({ timeout: '300ms' }))
      expect((await scene.committed()).get(0)).toBe(3n)
      await scene.join(act, options)
      await scene.untilDone()
      expect(seen(scene, 1)).toEqual(['r3'])
    })

    it('on a tier: a retry that was handled is not handled again behind one that was not', async () => {
      const scene = await given.scene()
      const gate = scene.gate()
      const options = { ordering: 'unordered', concurrency: 8 }
      const act = ({ member, attempt, value }: Call): unknown => {
        if (attempt === 1) throw new RetryableError('later')
        return member === 0 && value === 'r1' && gate.wait()
      }
      const first = await scene.join(act, options)
      await scene.produce(numbered(0, 6))
      await scene.untilCalls(6, ({ attempt }) => attempt === 2)
      await untilSaid(first, scene.retry('200ms'), 4n)
      await given.stage().during(first.faults.kill())
      await scene.join(act, options)
      await scene.untilDone()
      const again = scene.calls.filter(({ member }) => member === 1)
      expect(again.map(({ value, attempt }) => [value, attempt])).toEqual([['r1', 2]])
    })
  })
}
