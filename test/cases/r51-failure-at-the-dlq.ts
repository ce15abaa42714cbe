/**
 * R51: a failure at the dead letter topic itself.
 * Given hooks and listeners that throw at every dead letter; or a consumer whose main topic is somebody's dead letter
 * topic, and whose handler fails for good.
 * When records become dead letters.
 * Then each stands once on the dead letter topic and is committed, the failure of the hook is told and counted, nothing is
 * ever sent to the topic it was read from, and what fails on a dead letter topic goes to that topic's own.
 */
import { expect, it } from 'vitest'
import { NonRetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { header } from '../contract/scene'

const FAILS = (): never => {
  throw new NonRetryableError('a bad order')
}

export function r51(given: Given): void {
  it('R51 P12: hooks and listeners that throw at a dead letter: told, and the letter stands once', async () => {
    const scene = await given.scene()
    const told: string[] = []
    const bad = {
      deadLettered() {
        throw new Error('the hook is broken')
      },
    }
    const badToo = { deadLettered: async () => Promise.reject(new Error('the hook rejects')) }
    const { consumer } = scene.member(FAILS, {
      hooks: [bad, badToo, { problem: ({ error }: { error: string }) => void told.push(error) }],
    })
    consumer.on('deadLettered', () => {
      throw new Error('the listener is broken')
    })
    await given.stage().during(consumer.start())
    await scene.produce(['a', 'b'])
    await scene.untilDone()
    expect((await scene.dead()).map(({ value }) => String(value))).toEqual(['a', 'b'])
    expect(await given.stage().records(scene.retry('200ms'))).toEqual([])
    for (const what of ['the hook is broken', 'the hook rejects', 'the listener is broken']) {
      expect(told.filter((line) => line.includes(what)).length, what).toBeGreaterThan(0)
    }
    expect(scene.values()).toEqual(['a', 'b'])
    expect(consumer.health().status).toBe('ok')
  })

  it('R51 P4: a consumer of a dead letter topic that fails for good sends to that topic’s own, and never back', async () => {
    const scene = await given.scene()
    await scene.join(FAILS)
    await scene.produce(['a', 'b'])
    await scene.untilDead(2)
    const reader = given.stage().unique('reader')
    const calls: string[] = []
    await scene.join(
      ({ value, attempt }) => {
        calls.push(`${value}#${attempt}`)
        FAILS()
      },
      { groupId: reader, topic: scene.dlq, schedule: ['300ms'], topicSetup: 'create' },
    )
    const own = `${scene.dlq}.dlq`
    await given.stage().until(async () => (await given.stage().records(own)).length === 2, 'its own dead letters')
    await given
      .stage()
      .until(async () => (await given.stage().committed(reader, scene.dlq)).get(0) === 2n, 'both are committed')
    expect(calls).toEqual(['a#1', 'b#1'])
    expect(await scene.dead()).toHaveLength(2)
    const letters = await given.stage().records(own)
    expect(letters.map((one) => header(one, 'x-original-topic'))).toEqual([scene.dlq, scene.dlq])
    expect(await given.stage().records(`${scene.dlq}.retry.300ms`)).toEqual([])
  })
}
