import { describe, expect, it } from 'vitest'
import { exponential, RetryableError } from '../../src'
import type { Given } from './promises'
import { header } from './scene'

const FAILS = (): never => {
  throw new RetryableError('the shop is closed')
}

/** P2: no handler before its time, and no waiting for other traffic. */
export function duePromises(given: Given): void {
  describe('P2 never early, hardly late', () => {
    it('no handler starts before its time, on any tier', async ({ annotate }) => {
      const scene = await given.scene({ partitions: 3, schedule: ['200ms', '400ms'] })
      const member = await scene.join(FAILS, { ordering: 'unordered' })
      for (let n = 0; n < 30; n++) await scene.produce([`r${n}`], n % 3)
      await scene.untilDone()
      expect(scene.calls).toHaveLength(90)
      scene.expectNeverEarly()
      const lateness = member.hooks
        .events('attempt')
        .flatMap(({ latenessMs }) => (latenessMs === undefined ? [] : [latenessMs]))
      expect(lateness).toHaveLength(60)
      // Only told: a starved machine is late by itself.
      if (given.stage().kind === 'real') await annotate(`lateness: at most ${Math.max(...lateness)} ms`)
      else expect(Math.max(...lateness)).toBe(0)
    })

    it('R70: the wait is that of the next tier, then the dead letter topic', async () => {
      const schedule = ['200ms', '400ms', '600ms']
      const scene = await given.scene({ schedule })
      await scene.join(FAILS)
      await scene.produce(['a'])
      await scene.untilDone()
      for (const [i, delay] of schedule.entries()) {
        const [copy] = await given.stage().records(scene.retry(delay))
        const waited = Number(header(copy!, 'x-due-at')) - Date.parse(header(copy!, 'x-last-failed-at')!)
        expect([delay, header(copy!, 'x-attempt'), waited]).toEqual([delay, String(i + 2), parseInt(delay)])
      }
      const [dead] = await scene.dead()
      expect(header(dead!, 'x-attempt')).toBe('4')
      expect(header(dead!, 'x-failure-reason')).toBe('exhausted')
      expect(header(dead!, 'x-due-at')).toBeUndefined()
    })

    it('a wait that is asked for picks a longer tier, and still counts one attempt', async () => {
      const scene = await given.scene({ schedule: ['200ms', '400ms', '600ms'] })
      await scene.join(({ attempt }) => {
        if (attempt === 1) throw new RetryableError('busy', { after: 500 })
      })
      await scene.produce(['a'])
      await scene.untilDone()
      expect(scene.calls.map(({ attempt, from }) => [attempt, from.topic])).toEqual([
        [1, scene.topic],
        [2, scene.retry('600ms')],
      ])
      scene.expectNeverEarly()
    })

    it('the same delay twice is one topic, and two waits', async () => {
      const scene = await given.scene({ schedule: ['200ms', '200ms'] })
      await scene.join(FAILS)
      await scene.produce(['a'])
      await scene.untilDone()
      expect(scene.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
      scene.expectNeverEarly()
    })

    it('jitter makes a wait longer, never shorter', async () => {
      const backoff = exponential({ first: '200ms', factor: 1, max: '200ms', retries: 1, jitter: 0.5 })
      const scene = await given.scene()
      await scene.join(({ attempt }) => attempt === 1 && FAILS(), { schedule: backoff, ordering: 'unordered' })
      await scene.produce(Array.from({ length: 20 }, (_, n) => `r${n}`))
      await scene.untilDone()
      scene.expectNeverEarly()
      const copies = await given.stage().records(scene.retry('200ms'))
      const waits = copies.map((one) => Number(header(one, 'x-due-at')) - Date.parse(header(one, 'x-last-failed-at')!))
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(200)
      expect(Math.max(...waits)).toBeLessThanOrEqual(300)
      expect(new Set(waits).size).toBeGreaterThan(1)
    })
  })
}
