import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src'
import { codecSwitch, produceGzip } from './codecs'
import { COMPLETE, forgedRecord } from './forged'
import type { Given } from './promises'
import type { Member } from './scene'

const laneOf = (member: Member, topic: string, partition: number) =>
  member.consumer
    .health()
    .groups.flatMap(({ partitions }) => partitions)
    .find((lane) => lane.topic === topic && lane.partition === partition)

const SAYS = /^\S+ GZIP compression not implemented: register it in kafkajs's CompressionCodecs/

/** P12, P1, P5: a batch that cannot be decoded stops its partition and nothing else, and nothing of it is passed over. */
export function unreadablePromises(given: Given): void {
  describe('P12 a batch that cannot be decoded', () => {
    it('stops its partition only, is told with its place, found by the next owner too, and handled at last', async () => {
      const scene = await given.scene({ partitions: 3 })
      const gzip = codecSwitch('GZIP')
      await scene.produce(['a', 'b'], 1)
      await produceGzip(given.stage().client(), scene.topic, 1, [{ value: 'packed' }, { value: 'packed too' }])
      await scene.produce(['behind'], 1)
      gzip.takeAway()

      const first = await scene.join()
      await given.stage().until(() => first.hooks.counts.unreadable > 0, 'it is told')
      const beside = Array.from({ length: 100 }, (_, i) => `r${i}`)
      await scene.produce(beside, 0)
      await scene.produce(beside, 2)
      await scene.untilCalls(202)
      expect(scene.values().filter((value) => value === 'a' || value === 'b')).toEqual(['a', 'b'])
      const place = { tier: 'main', topic: scene.topic, partition: 1, offset: '2' }
      expect(first.hooks.events('unreadable')[0]).toMatchObject({ ...place, error: expect.stringMatching(SAYS) })
      expect(laneOf(first, scene.topic, 1)).toMatchObject({
        state: 'unreadable',
        position: '2',
        unreadable: expect.stringMatching(SAYS),
      })
      expect(laneOf(first, scene.topic, 0)).toMatchObject({ state: 'ok' })
      const { status, problems } = first.consumer.health()
      expect([status, problems]).toEqual([
        'degraded',
        [expect.stringMatching(`${scene.topic}/1 waits at 2: .*register it`)],
      ])

      const second = await scene.join()
      await first.stop()
      await given.stage().until(() => second.hooks.counts.unreadable > 0, 'the next owner tells it')
      expect(second.hooks.events('unreadable')[0]).toMatchObject(place)
      await scene.produce(['after'], 0)
      await scene.untilCalls(1, ({ value }) => value === 'after')
      await given.stage().until(async () => (await scene.committed()).get(0) === 101n, 'the others are committed')
      expect((await scene.committed()).get(1)).toBe(2n)

      gzip.give()
      await scene.untilDone()
      expect(scene.calls.filter(({ partition }) => partition === 1).map(({ value }) => value)).toEqual([
        'a',
        'b',
        'packed',
        'packed too',
        'behind',
      ])
      expect(second.hooks.events('readable')).toMatchObject([place])
      expect(second.consumer.health()).toMatchObject({ status: 'ok', problems: [] })
      for (const { hooks } of [first, second]) expect([hooks.counts.crashed, hooks.counts.problem]).toEqual([0, 0])
      // Joins of two members and the leaving of one; a crash each time would have made dozens.
      expect(second.hooks.counts.rebalanced).toBeLessThanOrEqual(4)
      scene.expectNoStepBack()
    })

    it('on a retry topic leaves the main topic and the other retries alone; whatever the codec throws', async () => {
      const scene = await given.scene({ partitions: 2 })
      const gzip = codecSwitch('GZIP')
      const retry = scene.retry('200ms')
      const { headers } = forgedRecord(scene, 'packed', COMPLETE)
      await produceGzip(given.stage().client(), retry, 1, [{ value: 'packed', headers: headers as never }])
      gzip.takeAway('no error at all')
      const member = await scene.join(({ attempt, value }) => {
        if (attempt === 1 && value === 'fails') throw new RetryableError('not yet')
      })
      await given.stage().until(() => member.hooks.counts.unreadable > 0, 'it is told')
      await scene.produce(['fails', 'fails', 'good'], 0)
      await scene.untilCalls(2, ({ attempt }) => attempt === 2)
      expect(member.hooks.events('unreadable')[0]).toMatchObject({
        tier: '200ms',
        topic: retry,
        partition: 1,
        offset: '0',
      })
      expect(laneOf(member, retry, 1)).toMatchObject({ state: 'unreadable' })
      expect(scene.values().filter((value) => value === 'packed')).toEqual([])
      gzip.give()
      await scene.untilDone()
      expect(scene.values().filter((value) => value === 'packed')).toEqual(['packed'])
      expect(member.hooks.counts.crashed).toBe(0)
    })

    it('deleted from the log, its partition goes on behind it', async () => {
      const scene = await given.scene()
      const gzip = codecSwitch('GZIP')
      await produceGzip(given.stage().client(), scene.topic, 0, [{ value: 'packed' }])
      await scene.produce(['behind'])
      gzip.takeAway()
      const member = await scene.join()
      await given.stage().until(() => member.hooks.counts.unreadable > 0, 'it is told')
      await given.stage().deleteRecords(scene.topic, 0, 1n)
      await scene.untilDone()
      expect(scene.values()).toEqual(['behind'])
      expect(member.hooks.counts.readable).toBe(1)
      expect(member.consumer.health()).toMatchObject({ status: 'ok', problems: [] })
    })
  })
}
