/**
 * R08: many sends at once, some dropped in silence.
 * Given fifty records whose handlers run side by side.
 * When all fail in the same moment, and fifty copies go to one partition of one retry topic; when a handler sends fifty.
 * Then fifty copies of fifty records stand there, each once; and the producer is not idempotent, since kafkajs's
 * idempotent one acknowledges records that are nowhere.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { header } from '../contract/scene'
import { numbered } from './numbered'

const FIFTY = Array.from({ length: 50 }, (_, n) => String(n))

export function r08(given: Given): void {
  it('R08 P1: fifty records fail at once: fifty copies stand, each once', async () => {
    const scene = await given.scene()
    const gate = scene.gate()
    const member = await scene.join(
      async ({ attempt }) => {
        if (attempt > 1) return
        await gate.wait()
        throw new RetryableError('the shop is closed')
      },
      { ordering: 'unordered', concurrency: 50 },
    )
    await scene.produce(numbered(50))
    await scene.untilCalls(50)
    gate.open()
    await scene.untilDone()
    const copies = await given.stage().records(scene.retry('200ms'))
    const byNumber = (a: string | undefined, b: string | undefined): number => Number(a) - Number(b)
    expect(copies.map((one) => header(one, 'x-original-offset')).sort(byNumber)).toEqual(FIFTY)
    expect(scene.values(2).sort((a, b) => Number(a) - Number(b))).toEqual(FIFTY)
    const producers = member.faults.calls('producer').map(({ args }) => args[0] as { idempotent?: boolean } | undefined)
    expect(producers.length).toBeGreaterThan(0)
    for (const config of producers) expect(config?.idempotent ?? false).toBe(false)
  })

  it('R08 P1: fifty sends of one handler at once: fifty records stand, each once', async () => {
    const scene = await given.scene()
    const out = given.stage().unique('invoices')
    await given.stage().createTopics({ [out]: 1 })
    await scene.join(({ ctx }) => Promise.all(FIFTY.map(async (value) => ctx.send({ topic: out, value }))))
    await scene.produce(['order'])
    await scene.untilDone()
    const sent = (await given.stage().records(out)).map(({ value }) => String(value))
    expect(sent.sort((a, b) => Number(a) - Number(b))).toEqual(FIFTY)
  })
}
