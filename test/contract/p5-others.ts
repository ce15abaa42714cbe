import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from './promises'

const FAILS = (): never => {
  throw new RetryableError('the shop is closed')
}

/** P5: who fails or is slow delays only whom its ordering mode says. */
export function othersPromises(given: Given): void {
  describe("P5 nobody waits for somebody else's failure", () => {
    it('by key: a slow key delays its own records only', async () => {
      const scene = await given.scene()
      const slow = scene.gate()
      await scene.join(({ value }) => value === 'a0' && slow.wait(), { ordering: 'key' })
      await scene.produce(['a0', 'a1', 'b0', 'b1', 'c0'].map((value) => ({ key: value[0]!, value })))
      await scene.produce([{ value: 'no key' }])
      await scene.untilCalls(5)
      expect(scene.values().sort()).toEqual(['a0', 'b0', 'b1', 'c0', 'no key'])
      slow.open()
      await scene.untilDone()
    })

    it('a failing record delays those behind it only until its copy stands', async () => {
      const scene = await given.scene()
      await scene.join(({ value }) => value === 'bad' && FAILS(), { schedule: ['1h'], topicSetup: 'create' })
      await scene.produce(['bad', 'good'])
      await scene.untilCalls(2)
      await given.stage().until(async () => (await scene.committed()).get(0) === 2n, 'both are committed')
      expect(scene.values()).toEqual(['bad', 'good'])
    })

    it('R54: keys that always fail do not use up the places', async () => {
      const scene = await given.scene({ schedule: ['200ms', '400ms'] })
      await scene.join(({ value }) => value !== 'good' && FAILS(), { ordering: 'key', concurrency: 8 })
      const bad = Array.from({ length: 80 }, (_, n) => ({ key: `k${n % 8}`, value: 'bad' }))
      await scene.produce([...bad, { key: 'g', value: 'good' }])
      await scene.untilCalls(1, ({ value }) => value === 'good')
      await scene.untilDone()
      expect(await scene.dead()).toHaveLength(80)
    })

    it("retries never take the main topic's places: with one place each, a stuck retry stops no first attempt", async () => {
      const scene = await given.scene()
      const stuck = scene.gate()
      await scene.join(
        async ({ value, attempt }) => {
          if (value === 'bad' && attempt === 1) FAILS()
          if (attempt === 2) await stuck.wait()
        },
        { concurrency: 1 },
      )
      await scene.produce(['bad'])
      await scene.untilCalls(1, ({ attempt }) => attempt === 2)
      await scene.produce(['a', 'b', 'c'])
      await given.stage().until(async () => (await scene.committed()).get(0) === 4n, 'the first attempts are committed')
      expect(stuck.isOpen).toBe(false)
      stuck.open()
      await scene.untilDone()
    })

    it("and a tier's places are its own", async () => {
      const scene = await given.scene({ partitions: 2, schedule: ['200ms', '400ms'] })
      const stuck = scene.gate()
      await scene.join(
        async ({ value, attempt }) => {
          if (value === 'stuck' && attempt === 2) await stuck.wait()
          else FAILS()
        },
        { concurrency: 1, ordering: 'unordered' },
      )
      await scene.produce(['bad'])
      await scene.untilCalls(1, ({ attempt }) => attempt === 2)
      await scene.produce(['stuck'], 1)
      await scene.untilDead(1)
      expect(scene.values(3)).toEqual(['bad'])
      stuck.open()
    })

    it('a copy that cannot be published holds its own partition, and neither others nor the free places', async () => {
      const scene = await given.scene({ partitions: 4 })
      const member = await scene.join(
        async ({ value }) => {
          // Not at once, so that lanes come to wait for the one place.
          await given.stage().takes(1)
          if (value === 'bad') FAILS()
        },
        { concurrency: 1 },
      )
      const fault = member.faults.publish('reject')
      await scene.produce(['bad', ...Array.from({ length: 20 }, () => 'behind')], 0)
      for (const partition of [1, 2, 3])
        await scene.produce(
          Array.from({ length: 20 }, (_, n) => `${partition}: ${n}`),
          partition,
        )
      await scene.untilCalls(60, ({ partition }) => partition > 0)
      await scene.witness(1)
      expect((await scene.committed()).get(0)).toBe(0n)
      fault.stop()
      await scene.untilDone()
    })

    it('a full lane stops only itself', async () => {
      const scene = await given.scene({ partitions: 2 })
      const slow = scene.gate()
      const member = await scene.join(({ partition }) => partition === 0 && slow.wait(), { maxBufferedRecords: 10 })
      await scene.produce(
        Array.from({ length: 50 }, (_, n) => `a${n}`),
        0,
      )
      await given.stage().until(() => member.hooks.events('lane').some(({ full }) => full), 'the lane is full')
      await scene.produce(
        Array.from({ length: 50 }, (_, n) => `b${n}`),
        1,
      )
      await scene.untilCalls(50, ({ partition }) => partition === 1)
      slow.open()
      await scene.untilDone()
      expect(scene.values().filter((value) => value?.startsWith('a'))).toEqual(
        Array.from({ length: 50 }, (_, n) => `a${n}`),
      )
    })
  })
}
