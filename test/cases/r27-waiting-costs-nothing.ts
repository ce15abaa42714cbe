/**
 * R27: waiting uses up an error budget.
 * Given a tier, and twenty records that come to it one by one while all those before them wait.
 * When each is fetched, held and waited for: more often than kafkajs's retrier forgives in the life of a consumer.
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
    const { hooks, consumer } = await scene.join(undefined, {
      logger: { debug: nothing, info: nothing, warn: alarm, error: alarm },
    })
    const held = (): number => consumer.health().groups[1]?.partitions[0]?.held ?? 0
    for (let n = 0; n < 20; n++) {
      await putOnTier(scene, '3s', [{ value: String(n), dueIn: 2_900 }])
      await given.stage().until(
        () => held() + scene.calls.length > n,
        () => `record ${n} is held: ${held()}`,
      )
    }
    await scene.untilDone()
    expect(scene.values()).toEqual(Array.from({ length: 20 }, (_, n) => String(n)))
    scene.expectNeverEarly()
    for (const { startedAt, dueAt } of scene.calls) expect(startedAt - dueAt!).toBeLessThanOrEqual(2_000)
    expect([hooks.counts.crashed, hooks.counts.restarted, hooks.counts.problem]).toEqual([0, 0, 0])
    expect(alarming).toEqual([])
  })
}
