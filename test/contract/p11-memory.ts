import { describe, expect, it } from 'vitest'
import type { EventOf } from '../../src'
import type { Given } from './promises'

const VALUE = 'x'.repeat(1_000)

/** P11: what is held in memory has a bound, and a full lane stops nobody else. */
export function memoryPromises(given: Given): void {
  const during = <T>(work: Promise<T>): Promise<T> => given.stage().during(work)

  describe('P11 memory is bounded', () => {
    it('a slow handler on a fast topic: one fetch beyond the limit at most, and the other partitions go on', async () => {
      const scene = await given.scene({ partitions: 3 })
      const slow = scene.gate()
      const lanes: EventOf<'lane'>[] = []
      const { consumer, hooks } = scene.member(({ partition }) => (partition === 0 ? slow.wait() : undefined), {
        maxBufferedRecords: 300,
        maxBufferedBytes: '300KiB',
      })
      consumer.on('lane', (event) => void lanes.push(event))
      // Small batches: a broker gives out whole ones, however little was asked for.
      for (let n = 0; n < 100; n++) await scene.produce(Array.from({ length: 20 }, () => VALUE))
      await during(consumer.start())
      const lane = (partition: number) =>
        consumer.health().groups[0]?.partitions.find((one) => one.partition === partition)
      await given.stage().until(() => lane(0)?.state === 'full', 'the slow lane is full')
      const held = lane(0)!.held
      for (let round = 0; round < 5; round++) {
        await scene.produce(['r'], 1)
        await scene.produce(['r'], 2)
        await scene.untilCalls(2 * (round + 1), ({ partition }) => partition !== 0)
      }
      // While the others went on, no more was fetched for the one that is full.
      expect(lane(0)).toMatchObject({ held, state: 'full', running: 1 })
      slow.open()
      await scene.untilDone()
      expect(scene.calls.filter(({ partition }) => partition === 0)).toHaveLength(2_000)
      // A third of 300 records, or of 300 KiB, for each lane; a fetch brings 64 KiB at most.
      const most = Math.max(...lanes.map((event) => event.held), held)
      const mostBytes = Math.max(...lanes.map(({ bytes }) => bytes))
      expect(most).toBeLessThanOrEqual(100 + 70)
      expect(mostBytes).toBeLessThanOrEqual(100 * 1024 + 170 * 512 + 70 * 1024)
      expect(hooks.counts.crashed + hooks.counts.problem).toBe(0)
      scene.expectNoStepBack()
    })

    it('one byte limit holds for a single huge record too: it is taken, and nothing beside it', async () => {
      const scene = await given.scene()
      const slow = scene.gate()
      const { consumer } = scene.member(() => slow.wait(), { maxBufferedBytes: '1KiB' })
      for (let n = 0; n < 5; n++) await scene.produce(['x'.repeat(100_000)])
      await during(consumer.start())
      await given.stage().until(() => consumer.health().groups[0]?.partitions[0]?.state === 'full', 'it is full')
      expect(consumer.health().groups[0]?.partitions[0]?.held).toBeLessThanOrEqual(2)
      slow.open()
      await scene.untilDone()
      expect(scene.calls).toHaveLength(5)
    })

    it(
      'a long backlog (100,000 records on a real broker) goes through a small buffer',
      { timeout: 120_000 },
      async () => {
        const scene = await given.scene()
        const chunk = Array.from({ length: 5_000 }, () => 'r')
        const chunks = given.stage().kind === 'real' ? 20 : 2
        for (let n = 0; n < chunks; n++) await scene.produce(chunk)
        let handled = 0
        let most = 0
        const { consumer } = scene.member(undefined, {
          maxBufferedRecords: 2_000,
          maxBufferedBytes: '2MiB',
          handler: () => {
            handled++
          },
        })
        consumer.on('lane', ({ held }) => {
          most = Math.max(most, held)
        })
        await during(consumer.start())
        await scene.untilDone()
        expect(handled).toBe(chunks * chunk.length)
        // Tiny records: what one fetch brings is bounded by its bytes (512 KiB), not by the number of its records.
        expect(most).toBeLessThanOrEqual(2_000 + 60_000)
      },
    )
  })
}
