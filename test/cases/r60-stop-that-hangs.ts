/**
 * R60: a stop that hangs.
 * Given a handler that never settles, or one that awaits `stop()` itself, directly or through helpers of the user's, on the
 * main topic or on a retry topic.
 * When the consumer is stopped with a time limit.
 * Then the stop ends soon after the limit and names the record, which stays uncommitted and is handled by the next
 * consumer; the call from inside does not wait for itself, its record counts as handled, and the stop goes on to its end.
 */
import { expect, it } from 'vitest'
import { RetryableError, type StopReport } from '../../src'
import type { Given } from '../contract/promises'
import { expectGone, expectRestHandled } from './stopped'

const TIERS = ['main', 'retry'] as const

export function r60(given: Given): void {
  const during = <T>(work: Promise<T>): Promise<T> => given.stage().during(work)
  const failsFirst = (tier: (typeof TIERS)[number], attempt: number): boolean => {
    if (tier === 'retry' && attempt === 1) throw new RetryableError('to the retry topic first')
    return true
  }

  it.each(TIERS)('R60 P9: a handler that never settles ends no stop, and its record is named (%s)', async (tier) => {
    const scene = await given.scene()
    const never = scene.gate()
    const { consumer } = await scene.join(
      ({ value, attempt }) => value === 'stuck' && failsFirst(tier, attempt) && never.wait(),
      { ordering: 'unordered' },
    )
    await scene.produce(['stuck', 'good'])
    await scene.untilCalls(tier === 'main' ? 2 : 3)
    const from = scene.calls.find(
      ({ value, attempt }) => value === 'stuck' && attempt === (tier === 'main' ? 1 : 2),
    )!.from
    const before = given.stage().now()
    const report = await during(consumer.stop({ timeout: '300ms' }))
    expect(given.stage().now() - before).toBeLessThan(6_000)
    expect(report.finished).toBe(true)
    expect(report.abandoned).toEqual([from])
    await expectGone(scene)
    const calls = scene.calls.length
    await expectRestHandled(scene, 0, calls, ['stuck', 'good'])
    expect(scene.calls.slice(calls).map(({ value, member }) => [value, member])).toContainEqual(['stuck', 1])
  })

  it.each(TIERS)('R60 P9: a handler that awaits the stop does not wait for itself (%s)', async (tier) => {
    const scene = await given.scene()
    const reports: StopReport[] = []
    const shutDown = async (): Promise<void> => {
      await Promise.resolve()
      const [report] = await Promise.all([member.consumer.stop()])
      reports.push(report)
    }
    const member = await scene.join(async ({ attempt }) => {
      failsFirst(tier, attempt)
      await given.stage().takes(20)
      await shutDown()
    })
    await scene.produce(['a'])
    await given.stage().until(() => reports.length > 0, 'the call from inside')
    expect(reports).toEqual([{ abandoned: [], finished: false }])
    expect(await during(member.consumer.stop())).toEqual({ abandoned: [], finished: true })
    await expectGone(scene)
    await expectRestHandled(scene, 0, tier === 'main' ? 1 : 2, ['a'])
    expect(scene.calls).toHaveLength(tier === 'main' ? 1 : 2)
  })
}
