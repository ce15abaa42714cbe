/**
 * R06: a wrong offset around a slow dead letter.
 * Given ten records of ten keys, handled side by side; the fifth fails for good.
 * When its dead letter is not acknowledged for a while, and all others succeed at once.
 * Then the commit stays at 5 until it is, and goes from there to 10: never the other way, never beside it.
 */
import { expect, it } from 'vitest'
import { NonRetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { numbered } from './numbered'

export function r06(given: Given): void {
  it('R06 P1: 5 waits for its copy, 6 to 9 succeed: the commit stays at 5, then goes to 10', async () => {
    const scene = await given.scene({ partitions: 2 })
    const answer = scene.gate()
    const member = await scene.join(
      ({ value }) => {
        if (value === '5') throw new NonRetryableError('a bad order')
      },
      { ordering: 'key' },
    )
    member.faults.publish(answer.wait(), { topic: scene.dlq, times: 1 })
    await scene.produce(numbered(10))
    await scene.untilCalls(10)
    await scene.witness(1)
    expect((await scene.committed()).get(0)).toBe(5n)
    answer.open()
    await scene.untilDone()
    const offsets = scene.commits().filter(({ partition }) => partition === 0)
    expect(offsets.map(({ offset }) => offset).filter((offset) => offset > 5n)).toEqual([10n])
    expect(await scene.dead()).toHaveLength(1)
    scene.expectNoStepBack()
  })
}
