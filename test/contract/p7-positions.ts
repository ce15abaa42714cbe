import { describe, expect, it } from 'vitest'
import type { Given } from './promises'
import type { Call } from './scene'

const numbered = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, n) => `r${from + n}`)

/** P7, the half about where a partition begins, and what is no longer there. */
export function positionPromises(given: Given): void {
  describe('P7 rebalance-safe: positions', () => {
    it('rule 10: the log is cut below us: reported as gone, then mended', async () => {
      const scene = await given.scene()
      const gate = scene.gate()
      const member = await scene.join(({ offset }) => offset === '0' && gate.wait(), { maxBufferedRecords: 10 })
      await scene.produce(numbered(0, 30))
      await given.stage().until(() => member.hooks.events('lane').some(({ full }) => full), 'the lane is full')
      await scene.produce(numbered(30, 60))
      await given.stage().deleteRecords(scene.topic, 0, 45n)
      gate.open()
      await scene.untilDone()
      expect(scene.values()).toEqual([...numbered(0, 10), ...numbered(45, 60)])
      expect(member.hooks.events('gone')).toMatchObject([{ topic: scene.topic, partition: 0, from: '10', to: '45' }])
      expect(member.hooks.counts.crashed).toBe(0)
      scene.expectNoStepBack()
    })

    it('the log is cut below what is committed while nobody runs', async () => {
      const scene = await given.scene()
      const first = await scene.join()
      await scene.produce(numbered(0, 10))
      await scene.untilDone()
      await first.stop()
      await scene.produce(numbered(10, 20))
      await given.stage().deleteRecords(scene.topic, 0, 15n)
      await scene.join()
      await scene.untilDone()
      expect(scene.values()).toEqual([...numbered(0, 10), ...numbered(15, 20)])
    })

    it('rule 7: a reset by the client on a cut log is no new group: startFrom latest does not jump over what is left', async () => {
      const scene = await given.scene()
      const [stuck, others] = [scene.gate(), scene.gate()]
      const options = { startFrom: 'latest', maxBufferedRecords: 10, ordering: 'unordered', concurrency: 2 }
      const act = ({ member, offset }: Call): unknown => member === 0 && (offset === '0' ? stuck : others).wait()
      const first = await scene.join(act, options)
      await given.stage().until(async () => (await scene.committed()).get(0) === 0n, 'the start is fixed')
      await scene.produce(numbered(0, 30))
      await given.stage().until(() => first.hooks.events('lane').some(({ full }) => full), 'the lane is full')
      await scene.produce(numbered(30, 60))
      // None of ours after it: what is done is said again at any time, and would stand over the client's reset.
      first.faults.commit('reject')
      await given.stage().deleteRecords(scene.topic, 0, 45n)
      others.open()
      await given.stage().until(async () => first.hooks.counts.gone === 1, 'the cut is noticed')
      // The client has written its reset, and the process dies before the frontier has moved past it.
      expect((await scene.committed()).get(0)).toBe(-2n)
      await given.stage().during(first.faults.kill())
      await scene.produce(numbered(60, 61))
      await scene.join(undefined, options)
      await scene.untilDone()
      const second = scene.calls.filter(({ member }) => member === 1).map(({ value }) => value)
      expect(second.sort()).toEqual(numbered(45, 61))
    })

    it('rule 7: partitions that are added are read from their beginning, also with startFrom latest', async () => {
      const scene = await given.scene({ partitions: 2 })
      await scene.produce(['old'], 0)
      const options = { startFrom: 'latest' }
      const first = await scene.join(undefined, options)
      await given.stage().until(async () => (await scene.committed()).get(0) === 1n, 'the start is fixed')
      await given.stage().addPartitions(scene.topic, 4)
      for (const partition of [2, 3]) await scene.produce([`new ${partition}`], partition)
      // A rebalance makes the group look at its topics at once, and not when the metadata have grown old.
      const second = await scene.join(undefined, options)
      await scene.untilShared([first, second], 4)
      await scene.untilDone()
      expect(scene.values().sort()).toEqual(['new 2', 'new 3'])
    })

    it('rule 7: startFrom latest is fixed at the start: nobody home loses nothing', async () => {
      const scene = await given.scene({ partitions: 2 })
      for (const partition of [0, 1]) await scene.produce(['old', 'old'], partition)
      const options = { startFrom: 'latest' }
      const first = await scene.join(undefined, options)
      await given
        .stage()
        .until(async () => [...(await scene.committed()).values()].every((at) => at === 2n), 'the start is fixed')
      await first.stop()
      for (const partition of [0, 1]) await scene.produce([`new ${partition}`], partition)
      await scene.join(undefined, options)
      await scene.untilDone()
      expect(scene.values().sort()).toEqual(['new 0', 'new 1'])
    })

    it('startFrom latest: a rebalance before the first record loses nothing', async () => {
      const scene = await given.scene({ partitions: 4 })
      await scene.produce(['old'], 0)
      const options = { startFrom: 'latest' }
      const first = await scene.join(undefined, options)
      await given
        .stage()
        .until(async () => [...(await scene.committed()).values()].every((at) => at >= 0n), 'the start is fixed')
      const joining = scene.join(undefined, options)
      for (const partition of [0, 1, 2, 3]) await scene.produce([`new ${partition}`], partition)
      const second = await joining
      await scene.untilShared([first, second], 4)
      await scene.untilDone()
      expect([...new Set(scene.values())].sort()).toEqual(['new 0', 'new 1', 'new 2', 'new 3'])
    })

    it('startFrom latest: members that start together, more of them than partitions', async () => {
      const scene = await given.scene({ partitions: 1 })
      await scene.produce(['old'])
      await Promise.all([1, 2, 3].map(() => scene.join(undefined, { startFrom: 'latest' })))
      await given.stage().until(async () => (await scene.committed()).get(0) === 1n, 'the start is fixed')
      await scene.produce(['new'])
      await scene.untilDone()
      expect(scene.values()).toEqual(['new'])
    })

    it('startFrom a date: the first record of that time or later', async () => {
      const scene = await given.scene({ partitions: 2 })
      const noon = given.stage().now() - 3_600_000
      const hours = [-2, -1, 0, 1].map((hour) => ({ value: `${hour}h`, timestamp: noon + hour * 60_000 }))
      await scene.produce(hours, 0)
      await scene.produce(hours.slice(0, 2), 1)
      await scene.join(undefined, { startFrom: new Date(noon) })
      await scene.untilDone()
      expect(scene.values()).toEqual(['0h', '1h'])
    })

    it('rule 15 (R63): members of one group that read different topics each get only their own', async () => {
      const one = await given.scene({ partitions: 3 })
      const two = await given.scene({ partitions: 3, group: one.group })
      const [first, second] = [await one.join(), await two.join()]
      const third = await one.join(undefined, { topic: [one.topic, two.topic] })
      const shares = (): number[] =>
        [first, second, third].map(({ consumer }) => consumer.health().groups[0]?.partitions.length ?? 0)
      const settled = (): boolean => shares().every((share) => share > 0) && shares().reduce((a, b) => a + b) === 6
      await given.stage().until(settled, () => `each has its share: ${shares().join()}`)
      for (const partition of [0, 1, 2]) {
        await one.produce(numbered(0, 5), partition)
        await two.produce(numbered(0, 5), partition)
      }
      await one.untilDone()
      await two.untilDone()
      const topics = (calls: readonly Call[], member: number): string[] => [
        ...new Set(calls.filter((call) => call.member === member).map(({ topic }) => topic)),
      ]
      expect([topics(one.calls, 0), topics(two.calls, 0)]).toEqual([[one.topic], [two.topic]])
      expect(
        new Set([...one.calls, ...two.calls].map(({ topic, partition, offset }) => `${topic}/${partition}@${offset}`))
          .size,
      ).toBe(30)
    })

    it('R63: startFrom latest, and the leader of the group reads another topic', async () => {
      const one = await given.scene()
      const two = await given.scene({ group: one.group })
      await two.produce(['old'])
      await one.join(undefined, { startFrom: 'latest' })
      await two.join(undefined, { startFrom: 'latest' })
      await given.stage().until(async () => (await two.committed()).get(0) === 1n, 'the start is fixed')
      await two.produce(['new'])
      await two.untilDone()
      expect(two.values()).toEqual(['new'])
    })
  })
}
