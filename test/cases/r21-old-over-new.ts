/**
 * R21: an old event over a newer state.
 * Given three records of one order: created, modified, cancelled.
 * When the second fails, the third succeeds, and the second is retried.
 * Then the retry comes after what followed it, in every order, and the handler sees where and when the record first
 * stood and which attempt this is, so that it can see for itself that it is late.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'

export function r21(given: Given): void {
  it.each(['partition', 'key', 'unordered'])(
    'R21 P6: a retry comes after what followed it, and says where it stood (%s)',
    async (ordering) => {
      const scene = await given.scene({ partitions: 2 })
      await scene.join(
        ({ value, attempt }) => {
          if (value === 'modified' && attempt === 1) throw new RetryableError('the shop is closed')
        },
        { ordering, concurrency: 1 },
      )
      const first = given.stage().now() - 60_000
      const history = ['created', 'modified', 'cancelled'].map((value, n) => ({
        key: 'order 1',
        value,
        timestamp: first + n,
      }))
      await scene.produce(history, 1)
      await scene.untilDone()
      const seen = scene.calls.map(({ payload: { topic, partition, message }, ctx }) => [
        String(message.value),
        topic === scene.topic && partition === 1,
        message.offset,
        Number(message.timestamp) - first,
        ctx.attempt,
      ])
      expect(seen).toEqual([
        ['created', true, '0', 0, 1],
        ['modified', true, '1', 1, 1],
        ['cancelled', true, '2', 2, 1],
        ['modified', true, '1', 1, 2],
      ])
    },
  )
}
