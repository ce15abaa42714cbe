/**
 * R69: one second that takes ten.
 * Given waits that double, and no other traffic: nothing but the timer can wake a record up.
 * When a record fails at each attempt.
 * Then each attempt begins no earlier than it is due, and within half a second after (at once on the fake broker), and the
 * whole takes as long as its waits.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'

const SCHEDULES = { fake: ['1s', '2s', '4s'], real: ['500ms', '1s', '2s'] }
const SLACK = { fake: 0, real: 500 }

export function r69(given: Given): void {
  it('R69 P2: each wait takes as long as it says', async () => {
    const { kind } = given.stage()
    const schedule = SCHEDULES[kind]
    const scene = await given.scene({ schedule })
    const { hooks } = await scene.join(() => {
      throw new RetryableError('not now')
    })
    await scene.produce(['a'])
    await scene.untilDead(1)
    expect(scene.calls.map(({ from }) => from.topic)).toEqual([
      scene.topic,
      ...schedule.map((delay) => scene.retry(delay)),
    ])
    scene.expectNeverEarly()
    const waits = kind === 'fake' ? [1_000, 2_000, 4_000] : [500, 1_000, 2_000]
    for (const [i, wait] of waits.entries()) {
      const took = scene.calls[i + 1]!.startedAt - scene.calls[i]!.endedAt!
      expect(took, `the wait of ${schedule[i]}`).toBeGreaterThanOrEqual(wait)
      expect(took, `the wait of ${schedule[i]}`).toBeLessThanOrEqual(wait + SLACK[kind])
    }
    const lateness = hooks.events('attempt').map(({ latenessMs }) => latenessMs)
    expect(lateness[0]).toBeUndefined()
    for (const late of lateness.slice(1)) expect(late).toBeLessThanOrEqual(SLACK[kind])
  })
}
