/**
 * R69: one second that takes ten.
 * Given waits that double, and no other traffic: nothing but the timer can wake a record up.
 * When two records fail at each attempt, one a little after the other.
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
    // The second one waits behind the first, on the same partitions, for a time of its own.
    await scene.produce(['a'])
    await scene.untilCalls(1)
    await given.stage().during(given.stage().takes(200))
    await scene.produce(['b'])
    await scene.untilDead(2)
    scene.expectNeverEarly()
    const waits = kind === 'fake' ? [1_000, 2_000, 4_000] : [500, 1_000, 2_000]
    for (const value of ['a', 'b']) {
      const calls = scene.calls.filter((call) => call.value === value)
      expect(calls.map(({ from }) => from.topic)).toEqual([scene.topic, ...schedule.map((delay) => scene.retry(delay))])
      for (const [i, wait] of waits.entries()) {
        const took = calls[i + 1]!.startedAt - calls[i]!.endedAt!
        expect(took, `the wait of ${schedule[i]} of ${value}`).toBeGreaterThanOrEqual(wait)
        expect(took, `the wait of ${schedule[i]} of ${value}`).toBeLessThanOrEqual(wait + SLACK[kind])
      }
    }
    for (const { attempt, latenessMs } of hooks.events('attempt')) {
      if (attempt === 1) expect(latenessMs).toBeUndefined()
      else expect(latenessMs).toBeLessThanOrEqual(SLACK[kind])
    }
  })

  it('R69 P2: one that waits behind another that succeeds is woken for its own time', async () => {
    const { kind } = given.stage()
    const [delay, wait] = [SCHEDULES[kind][0]!, kind === 'fake' ? 1_000 : 500]
    const scene = await given.scene({ schedule: [delay] })
    await scene.join(({ attempt }) => {
      if (attempt === 1) throw new RetryableError('not now')
    })
    await scene.produce(['a'])
    await scene.untilCalls(1)
    await given.stage().during(given.stage().takes(200))
    await scene.produce(['b'])
    await scene.untilDone()
    for (const value of ['a', 'b']) {
      const [first, second] = scene.calls.filter((call) => call.value === value)
      const took = second!.startedAt - first!.endedAt!
      expect(took, `the wait of ${value}`).toBeGreaterThanOrEqual(wait)
      expect(took, `the wait of ${value}`).toBeLessThanOrEqual(wait + SLACK[kind])
    }
  })
}
