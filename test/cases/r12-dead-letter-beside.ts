/**
 * R12: a dead letter steps over what still runs.
 * Given two keys side by side: the record at offset 1 still runs, the one at offset 2 fails for good.
 * When the dead letter of offset 2 is acknowledged.
 * Then the commit stays at 1 until the other one has settled.
 */
import { expect, it } from 'vitest'
import { NonRetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { numbered } from './numbered'

export function r12(given: Given): void {
  it('R12 P1: a dead letter does not step over an earlier record that still runs', async () => {
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
    expect((await scene.committed()).get(0)).toBe(3n)
  })
}
