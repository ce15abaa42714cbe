/**
 * R58: a stop before the start has ended.
 * Given a topic with records, and a consumer that is being started.
 * When `stop()` is called 0, 1, 5, 50 or 500 ms after `start()`, or twice, or while the broker holds the join.
 * Then after it has resolved no handler is called any more, none of its groups has a member, and the next consumer finds
 * every record that this one did not handle.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { expectGone, expectRestHandled } from './stopped'

const RECORDS = Array.from({ length: 20 }, (_, n) => `r${n}`)

export function r58(given: Given): void {
  const during = <T>(work: Promise<T>): Promise<T> => given.stage().during(work)

  it.each([0, 1, 5, 50, 500])('R58 P9: a stop %i ms after the start leaves nothing alive', async (ms) => {
    const scene = await given.scene({ partitions: 2, schedule: ['200ms', '400ms'] })
    await scene.produce(RECORDS)
    const { consumer, faults } = scene.member()
    const starting = consumer.start().then(
      () => undefined,
      (error: unknown) => error,
    )
    if (ms > 0) await during(given.stage().takes(ms))
    const [report, again] = await during(Promise.all([consumer.stop(), consumer.stop()]))
    expect(again).toBe(report)
    expect(report).toEqual({ abandoned: [], finished: true })
    const calls = scene.calls.length
    const requests = faults.trace.length
    await expectGone(scene)
    const error = await during(starting)
    if (error !== undefined) expect(error).toMatchObject({ code: 'RETRYLINE_STATE' })
    await expectRestHandled(scene, 0, calls, RECORDS)
    expect(faults.trace.slice(requests).map(({ name }) => name)).toEqual([])
  })
}
