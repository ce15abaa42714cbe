/**
 * R28: a success does not give the budget back.
 * Given twelve records, each of which fails once: more than kafkajs's retrier forgives in the life of a consumer.
 * When they are tried again at once, in place, or after a wait on a retry topic.
 * Then all succeed, the consumer does not crash, and none is dead-lettered.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'

const TWELVE = Array.from({ length: 12 }, (_, n) => `r${n}`)

export function r28(given: Given): void {
  it.each([
    ['in place', { immediate: { tries: 1, delay: 0 } }],
    ['on a retry topic', {}],
  ])('R28 P12: twelve records that each fail once: all succeed, %s', async (where, options) => {
    const scene = await given.scene()
    const failed = new Set<string | null>()
    const { hooks } = await scene.join(({ value }) => {
      if (failed.has(value)) return
      failed.add(value)
      throw new RetryableError('the shop is closed')
    }, options)
    await scene.produce(TWELVE)
    await scene.untilDone()
    const succeeded = hooks.events('attempt').filter(({ outcome }) => outcome === 'ok')
    expect(succeeded).toHaveLength(12)
    expect(scene.calls).toHaveLength(24)
    expect(scene.values(2)).toHaveLength(where === 'in place' ? 0 : 12)
    expect(await scene.dead()).toEqual([])
    expect([hooks.counts.crashed, hooks.counts.restarted]).toEqual([0, 0])
  })
}
