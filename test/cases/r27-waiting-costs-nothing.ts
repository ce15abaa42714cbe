/**
 * R27: waiting uses up an error budget.
 * Given twenty records on one tier, each due a little after the one before.
 * When the tier waits twenty times: more often than kafkajs's retrier forgives in the life of a consumer.
 * Then there is no crash, no restart and no error or warning, and each is handled on time.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { putOnTier } from './on-tier'

export function r27(given: Given): void {
  it('R27 P12: twenty waits in a row: no crash, no restart, no error', async () => {
    const scene = await given.scene({ schedule: ['3s'] })
    const alarming: string[] = []
    const nothing = (): void => undefined
    const alarm = (text: string, fields?: { event?: unknown }): void => {
      if (fields?.event !== undefined) alarming.push(text)
    }
    const waits = Array.from({ length: 20 }, (_, n) => ({ value: String(n), dueIn: 500 + n * 100 }))
    await putOnTier(scene, '3s', waits)
    const { hooks } = await scene.join(undefined, {
      logger: { debug: nothing, info: nothing, warn: alarm, error: alarm },
    })
    await scene.untilDone()
    expect(scene.values()).toEqual(waits.map(({ value }) => value))
    scene.expectNeverEarly()
    for (const { startedAt, dueAt } of scene.calls) expect(startedAt - dueAt!).toBeLessThanOrEqual(2_000)
    expect([hooks.counts.crashed, hooks.counts.restarted, hooks.counts.problem]).toEqual([0, 0, 0])
    expect(alarming).toEqual([])
  })
}
