/**
 * R44: a poison record, again and again.
 * Given a record that always fails between two good ones, no retry topic, and two quick tries in place.
 * When they come, with an error that is worth a retry and with one that is not.
 * Then the bad one is on the dead letter topic after its tries (one call, where retrying cannot help), the good one
 * behind it was handled within a second, nothing is called again, and all three are committed.
 */
import { expect, it } from 'vitest'
import { NonRetryableError, RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { header } from '../contract/scene'

export function r44(given: Given): void {
  it.each([
    { name: 'worth a retry', make: () => new RetryableError('busy'), calls: 3, reason: 'exhausted' },
    { name: 'hopeless', make: () => new NonRetryableError('a bad order'), calls: 1, reason: 'non-retryable' },
  ])('R44: $name: $calls calls, then the next record', async ({ make, calls, reason }) => {
    const scene = await given.scene({ schedule: [] })
    const member = await scene.join(
      ({ value }) => {
        if (value === 'bad') throw make()
      },
      { immediate: { tries: 2, delay: '100ms' } },
    )
    const producedAt = given.stage().now()
    await scene.produce(['good 1', 'bad', 'good 2'])
    await scene.untilDone()
    expect(scene.values()).toEqual(['good 1', ...Array<string>(calls).fill('bad'), 'good 2'])
    const behind = scene.calls.at(-1)!.startedAt - producedAt
    if (given.stage().kind === 'fake') expect(behind).toBeLessThanOrEqual(1_000)
    expect((await scene.dead()).map((one) => [String(one.value), header(one, 'x-failure-reason')])).toEqual([
      ['bad', reason],
    ])
    // Neither a restart of the process nor time brings it back.
    await member.stop()
    await scene.join()
    await scene.produce(['good 3'])
    await scene.untilDone()
    expect(scene.values().slice(calls + 2)).toEqual(['good 3'])
    expect(await scene.dead()).toHaveLength(1)
  })
}
