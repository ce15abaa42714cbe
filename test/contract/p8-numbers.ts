import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from './promises'

/** P8: whatever is told of offsets and times is exact, and fit for JSON. */
export function numberPromises(given: Given): void {
  describe('P8 exact numbers', () => {
    it('health and every event can be given to JSON, with offsets as text', async () => {
      const scene = await given.scene({ partitions: 2 })
      const { consumer, hooks } = await scene.join(({ value, attempt }) => {
        if (value === 'shaky' && attempt === 1) throw new RetryableError('not now')
        if (value === 'hopeless') throw new RetryableError('never')
      })
      await scene.produce(['good', 'shaky', 'hopeless'])
      await scene.untilDone()
      const health = JSON.parse(JSON.stringify(consumer.health())) as typeof consumer.health extends () => infer H
        ? H
        : never
      expect(health).toEqual(consumer.health())
      const lane = health.groups[0]?.partitions.find(({ partition }) => partition === 0)
      expect(lane).toMatchObject({ position: '3', committed: '3', held: 0 })
      const events = hooks.events()
      expect(JSON.parse(JSON.stringify(events))).toEqual(events)
      expect(new Set(events.map(({ type }) => type))).toContain('deadLettered')
      for (const event of events) if ('offset' in event) expect(event.offset).toMatch(/^\d+$/)
    })
  })
}
