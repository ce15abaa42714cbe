/**
 * R42: green health, dead consumer.
 * Given a running consumer whose health is `ok`.
 * When it crashes for a reason that kafkajs does not restart after; when no broker can be reached; when a handler hangs;
 * when all that it does is wait for a record to be due.
 * Then its health differs in each: crashed with the error, degraded with the reason, a running handler of such an age,
 * and `ok` with the time of the next record; and where the cause is gone it is `ok` again.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { crashing, lastingFault } from '../contract/p12-crashing'
import { putOnTier } from './on-tier'

export function r42(given: Given): void {
  it('R42 P12: a crash that kafkajs does not restart after: seen, with its error, and mended', async () => {
    const scene = await given.scene()
    const { client, crashNext } = crashing(given.stage().client())
    const { consumer } = scene.member(undefined, { kafka: client })
    const seen: string[] = []
    consumer.on('crashed', () => {
      const { status, groups, problems } = consumer.health()
      seen.push(`${status}, ${groups[0]?.state}, ${groups[0]?.error}, ${problems.length}`)
    })
    await given.stage().during(consumer.start())
    expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })
    crashNext(lastingFault())
    await scene.produce(['a', 'b'])
    await scene.untilDone()
    expect(seen).toEqual([expect.stringMatching(/^degraded, crashed, .*a lasting fault.*, 1$/)])
    await given.stage().until(() => consumer.health().status === 'ok', 'it is well again')
  })

  it('R42 P12: no broker can be reached: seen, and mended when one can', { timeout: 90_000 }, async () => {
    const scene = await given.scene()
    const { client, down, up } = given.stage().breakable()
    const { consumer, hooks } = scene.member(undefined, { kafka: client })
    await given.stage().during(consumer.start())
    await scene.produce(['a'])
    await scene.untilCalls(1)
    expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })
    down()
    try {
      await given.stage().until(() => consumer.health().status === 'degraded', 'the outage shows in the health')
      expect(consumer.health().problems.join()).toMatch(/crashed|no fetch was answered/)
    } finally {
      up()
    }
    await scene.produce(['b'])
    await scene.untilCalls(1, ({ value }) => value === 'b')
    await given.stage().until(() => consumer.health().status === 'ok', 'it is well again')
    expect(hooks.counts.crashed).toBe(hooks.counts.restarted)
  })

  it('R42 P12: a handler that hangs, and a retry consumer that only waits', async () => {
    const scene = await given.scene({ partitions: 2, schedule: ['2s'] })
    const gate = scene.gate()
    const { consumer } = await scene.join(({ value }) => value === 'hangs' && gate.wait())
    await scene.produce(['hangs'])
    await putOnTier(scene, '2s', [{ value: 'waits', dueIn: 2_000 }])
    await scene.untilCalls(1)
    const [main, tier] = [0, 1].map((group) => () => consumer.health().groups[group]!.partitions)
    await given.stage().until(() => main!()[0]!.oldestRunningMs > 300, 'it hangs for a while')
    await given.stage().until(() => tier!()[0]!.state === 'waiting', 'the retry waits')
    expect(main!()).toMatchObject([
      { running: 1, held: 1 },
      { running: 0, oldestRunningMs: 0 },
    ])
    expect(tier!()[0]).toMatchObject({ running: 0, held: 1 })
    expect(tier!()[0]!.nextDueAt).toBeGreaterThan(given.stage().now())
    expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })
    gate.open()
    await scene.untilDone()
  })
}
