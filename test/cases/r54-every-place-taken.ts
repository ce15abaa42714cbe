/**
 * R54: failing records fill every place.
 * Given a consumer with 8 places, by key or without order, and a wait that is far longer than the test.
 * When 80 records of 8 keys that always fail come, with a good record of another key in front, amid and behind.
 * Then the good ones are handled although none of the failing ones is done, intake goes on behind them, and no place is
 * held: a failing record leaves its lane for the retry topic.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'

const BAD = Array.from({ length: 80 }, (_, n) => ({ key: `k${n % 8}`, value: 'bad' }))
const good = (value: string) => ({ key: 'g', value })

export function r54(given: Given): void {
  it.each(['key', 'unordered', 'partition'] as const)(
    'R54 P5: keys that always fail take no place away (%s)',
    async (ordering) => {
      const scene = await given.scene({ schedule: ['1h'] })
      const { consumer, hooks } = await scene.join(
        ({ value }) => {
          if (value === 'bad') throw new RetryableError('always')
        },
        { ordering, concurrency: 8 },
      )
      await scene.produce([good('good 1'), ...BAD.slice(0, 40), good('good 2'), ...BAD.slice(40), good('good 3')])
      await given.stage().until(async () => (await scene.committed()).get(0) === 83n, 'all of it is committed')
      const values = scene.values()
      expect(values.filter((value) => value !== 'bad')).toEqual(['good 1', 'good 2', 'good 3'])
      expect(values.filter((value) => value === 'bad')).toHaveLength(BAD.length)
      expect(await given.stage().records(scene.retry('1h'))).toHaveLength(BAD.length)
      expect(hooks.counts.retried).toBe(BAD.length)
      expect(consumer.health().groups[0]?.partitions[0]).toMatchObject({ state: 'ok', held: 0, running: 0 })
      // And what comes now is taken in at once.
      await scene.produce([good('good 4')])
      await scene.untilCalls(1, ({ value }) => value === 'good 4')
    },
  )
}
