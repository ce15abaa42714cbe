import { describe, expect, it } from 'vitest'
import type { Given } from './promises'

/**
 * P1, where a topic is deleted and made anew under a running consumer. What stood on the old one is gone with it; what is
 * written on the new one is not, though the group's position on the old one was beyond it.
 */
export function remadePromises(given: Given): void {
  const bad = (count: number, name: string) =>
    Array.from({ length: count }, (_, i) => ({ key: 'k', value: `${name}${i}` }))

  /**
   * And waits until kafkajs has found its position gone and gone back (it commits -2 then), or the engine has. A new log that
   * has reached the old position before that is taken for the old one: kafkajs does not tell the ids of topics.
   */
  async function remake(topic: string, group: string): Promise<void> {
    const stage = given.stage()
    await stage.remakeTopic(topic, 1)
    const noticed = async (): Promise<boolean> =>
      [-2n, 0n].includes((await stage.committed(group, topic)).get(0) ?? -1n)
    await stage.until(noticed, 'the position is found gone')
  }

  describe('P1 nothing lost: topics made anew', () => {
    for (const [before, after] of [
      [1, 1],
      [3, 1],
      [2, 5],
    ] as const) {
      it(`a retry topic, after ${before} records, gets ${after}`, async () => {
        const scene = await given.scene()
        const tier = scene.retry('200ms')
        await scene.join((call) => {
          if (call.attempt === 1) throw new Error('not now')
        })
        await scene.produce(bad(before, 'old'))
        await scene.untilCalls(before, ({ attempt }) => attempt === 2)
        await scene.untilDone()
        await remake(tier, scene.retryGroup('200ms'))
        await scene.produce(bad(after, 'new'))
        await scene.untilCalls(after, ({ attempt, value }) => attempt === 2 && value!.startsWith('new'))
        await scene.untilDone()
        expect((await scene.committed(tier, scene.retryGroup('200ms'))).get(0)).toBe(BigInt(after))
        expect(scene.calls).toHaveLength(2 * (before + after))
      })
    }

    it('a retry topic with fewer partitions', async () => {
      const scene = await given.scene({ partitions: 3 })
      await scene.join((call) => {
        if (call.attempt === 1) throw new Error('not now')
      })
      for (const partition of [0, 1, 2]) await scene.produce(bad(2, 'old'), partition)
      await scene.untilCalls(6, ({ attempt }) => attempt === 2)
      await scene.untilDone()
      await remake(scene.retry('200ms'), scene.retryGroup('200ms'))
      for (const partition of [0, 1, 2]) await scene.produce(bad(2, `new${partition}`), partition)
      await scene.untilCalls(6, ({ attempt, value }) => attempt === 2 && value!.startsWith('new'))
      await scene.untilDone()
      // A request in part refused, since two of its partitions are no more, is sent again as a whole: copies may stand twice.
      const again = scene.calls.filter(({ attempt }) => attempt === 2).map(({ value }) => value)
      expect(new Set(again.slice(6)).size).toBe(6)
    })

    it('the main topic', async () => {
      const scene = await given.scene()
      await scene.join()
      await scene.produce(bad(3, 'old'))
      await scene.untilDone()
      await remake(scene.topic, scene.group)
      await scene.produce(bad(2, 'new'))
      await scene.untilCalls(2, ({ value }) => value!.startsWith('new'))
      await scene.untilDone()
      expect(scene.values()).toEqual(['old0', 'old1', 'old2', 'new0', 'new1'])
    })

    it('a record of the new topic never joins the call of an old one that stood at its offset', async () => {
      const scene = await given.scene()
      const gate = scene.gate()
      await scene.join(async (call) => {
        if (call.value === 'old1') await gate.wait()
      })
      await scene.produce(bad(2, 'old'))
      await scene.untilCalls(2)
      await remake(scene.topic, scene.group)
      await scene.produce(bad(2, 'new'))
      await scene.untilCalls(2, ({ value }) => value!.startsWith('new'))
      gate.open()
      await scene.untilDone()
      expect(scene.values()).toEqual(['old0', 'old1', 'new0', 'new1'])
    })
  })
}
