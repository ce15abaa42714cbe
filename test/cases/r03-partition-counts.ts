/**
 * R03: partition counts that differ.
 * Given a main topic of six partitions, a retry topic of three and a dead letter topic of one.
 * When records of every partition fail until the end, with and without a key.
 * Then each stands on the retry topic once and on the dead letter topic once: none went to a partition that is not there,
 * which kafkajs would have acknowledged with an empty answer.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'

export function r03(given: Given): void {
  it('R03 P1: main 6, retry 3, dead letter 1 partition: nothing vanishes', async () => {
    const scene = await given.scene({ partitions: 6, retryPartitions: 3, deadPartitions: 1 })
    const { hooks } = await scene.join(() => {
      throw new RetryableError('the shop is closed')
    })
    for (let partition = 0; partition < 6; partition++) {
      await scene.produce(
        [{ value: `plain ${partition}` }, { key: `key ${partition}`, value: `keyed ${partition}` }],
        partition,
      )
    }
    await scene.untilDone()
    const expected = [0, 1, 2, 3, 4, 5].flatMap((n) => [`plain ${n}`, `keyed ${n}`]).sort()
    expect((await given.stage().records(scene.retry('200ms'))).map(({ value }) => String(value)).sort()).toEqual(
      expected,
    )
    expect((await scene.dead()).map(({ value }) => String(value)).sort()).toEqual(expected)
    // None of them was sent astray first.
    expect(hooks.counts.publishFailed).toBe(0)
  })
}
