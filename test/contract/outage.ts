import { describe, expect, it } from 'vitest'
import { NonRetryableError, outage } from '../../src'
import type { Given } from './promises'
import type { Call, Member, Scene } from './scene'

const numbered = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, n) => `r${from + n}`)
const QUICK = { outage: { failures: 3, within: '10s', probe: '50ms', maxProbe: '200ms' } }

/** P1, P4, P5: a dependency that is down is no reason to dead-letter, and too many dead letters are a reason to stop. */
export function outagePromises(given: Given): void {
  /** A handler's dependency: calls fail while it is down, and the most that were under way at once are counted. */
  class Payments {
    isDown = true
    calls = 0
    most = 0
    #at = 0

    async charge(): Promise<void> {
      this.calls++
      this.most = Math.max(this.most, ++this.#at)
      try {
        await given.stage().takes(5)
        if (this.isDown) throw outage('payments', { cause: new Error('connect ECONNREFUSED') })
      } finally {
        this.#at--
      }
    }
  }

  const retried = async (scene: Scene): Promise<number> => (await given.stage().records(scene.retry('200ms'))).length
  const isHeld = (member: Member): boolean => member.consumer.health().status === 'held'
  const untilHeld = (member: Member): Promise<void> => given.stage().until(() => isHeld(member), 'it is held')

  describe('outage: a dependency that is down', () => {
    for (const ordering of ['partition', 'key', 'unordered']) {
      it(`what needs it waits, uncommitted, and is handled when it is back (${ordering})`, async () => {
        const scene = await given.scene({ partitions: 2 })
        const payments = new Payments()
        const member = await scene.join(() => payments.charge(), { ...QUICK, ordering, concurrency: 4 })
        for (const partition of [0, 1]) {
          await scene.produce(
            numbered(0, 100).map((value, n) => ({ key: `k${n % 7}`, value })),
            partition,
          )
        }
        await untilHeld(member)
        const before = payments.calls
        await given.stage().until(() => payments.calls >= before + 4, 'it probes')
        payments.most = 0
        const { outages, problems } = member.consumer.health()
        expect(outages).toMatchObject([{ dependency: 'payments', because: 'the handler says that it is down' }])
        expect(problems).toEqual([])
        expect((await scene.committed()).get(0) ?? 0n).toBeLessThanOrEqual(4n)
        expect(await scene.dead()).toEqual([])
        await given.stage().until(() => payments.calls >= before + 8, 'it goes on probing')
        expect(payments.most).toBe(1)

        payments.isDown = false
        await scene.untilDone()
        expect(await scene.dead()).toEqual([])
        expect(await retried(scene)).toBeLessThan(QUICK.outage.failures)
        for (const partition of [0, 1]) {
          const ended = scene.calls.filter((call) => call.partition === partition)
          expect(new Set(ended.map(({ value }) => value)).size).toBe(100)
        }
        expect(member.consumer.health()).toMatchObject({ status: 'ok', outages: [] })
        expect(member.hooks.events('released')).toMatchObject([{ dependency: 'payments' }])
        scene.expectNoStepBack()
      })
    }

    it('partitions that do not need it go on', async () => {
      const scene = await given.scene({ partitions: 2 })
      const payments = new Payments()
      const member = await scene.join(({ partition }) => partition === 0 && payments.charge(), QUICK)
      await scene.produce(numbered(0, 20), 0)
      await untilHeld(member)
      await scene.produce(numbered(0, 50), 1)
      await given.stage().until(async () => (await scene.committed()).get(1) === 50n, 'partition 1 is done')
      expect(isHeld(member)).toBe(true)
      payments.isDown = false
      await scene.untilDone()
    })

    it('the last attempt is not dead-lettered for it, not even the first time', async () => {
      const scene = await given.scene({ schedule: [] })
      const payments = new Payments()
      const member = await scene.join(() => payments.charge(), QUICK)
      await scene.produce(['only'])
      await untilHeld(member)
      payments.isDown = false
      await scene.untilDone()
      expect(await scene.dead()).toEqual([])
    })

    it('nor where the next attempt would come after the deadline', async () => {
      const scene = await given.scene({ schedule: ['200ms', '1m'] })
      const payments = new Payments()
      const act = ({ attempt }: Call): unknown => {
        if (attempt === 1) throw new Error('once')
        return payments.charge()
      }
      const member = await scene.join(act, { ...QUICK, deadline: '30s' })
      await scene.produce(['only'])
      await untilHeld(member)
      payments.isDown = false
      await scene.untilDone()
      expect(await scene.dead()).toEqual([])
    })

    it('a retry that meets it waits on its tier, and keeps its attempt', async () => {
      const scene = await given.scene()
      const payments = new Payments()
      const act = ({ attempt }: Call): unknown => {
        if (attempt === 1) throw new Error('once')
        return payments.charge()
      }
      const member = await scene.join(act, QUICK)
      await scene.produce(['only'])
      await untilHeld(member)
      payments.isDown = false
      await scene.untilDone()
      expect(new Set(scene.calls.map(({ attempt }) => attempt))).toEqual(new Set([1, 2]))
      expect(await scene.dead()).toEqual([])
    })

    it('another fault of the record, met by the probe, is judged as ever, and the rest goes on', async () => {
      const scene = await given.scene()
      const payments = new Payments()
      const act = async ({ offset }: Call): Promise<void> => {
        if (!payments.isDown && offset === '2') throw new NonRetryableError('no such customer')
        await payments.charge()
      }
      const member = await scene.join(act, QUICK)
      await scene.produce(numbered(0, 10))
      await untilHeld(member)
      payments.isDown = false
      await scene.untilDone()
      expect((await scene.dead()).map(({ value }) => value?.toString())).toEqual(['r2'])
    })

    it('P7, P9: a stop in the middle leaves what waits to the next owner, and no timer', async () => {
      const scene = await given.scene()
      const payments = new Payments()
      const first = await scene.join(() => payments.charge(), QUICK)
      await scene.produce(numbered(0, 10))
      await untilHeld(first)
      await first.stop()
      payments.isDown = false
      await scene.join(() => payments.charge(), QUICK)
      await scene.untilDone()
      const second = scene.calls.filter(({ member, attempt }) => member === 1 && attempt === 1)
      expect(second.map(({ value }) => value)).toEqual(numbered(2, 10))
      expect(await scene.dead()).toEqual([])
    })

    it('P7: a partition that moves in the middle takes what waits with it', async () => {
      const scene = await given.scene({ partitions: 2 })
      const payments = new Payments()
      const first = await scene.join(() => payments.charge(), QUICK)
      for (const partition of [0, 1]) await scene.produce(numbered(0, 10), partition)
      await untilHeld(first)
      const second = await scene.join(() => payments.charge(), QUICK)
      await scene.untilShared([first, second], 2)
      payments.isDown = false
      await scene.untilDone()
      expect(await scene.dead()).toEqual([])
      for (const partition of [0, 1]) {
        const seen = scene.calls.filter((call) => call.partition === partition).map(({ value }) => value)
        expect([...new Set(seen)].sort()).toEqual(numbered(0, 10))
      }
    })
  })

  describe('deadLetterLimit', () => {
    it('a bad deploy stops and shouts instead of dead-lettering everything', async () => {
      const scene = await given.scene()
      let isBad = true
      const act = (): void => {
        if (isBad) throw new NonRetryableError('undefined is not a function')
      }
      const member = await scene.join(act, { deadLetterLimit: { share: 0.5, burst: 20 } })
      await scene.produce(numbered(0, 200))
      await given.stage().until(() => member.hooks.counts.halted === 1, 'it has halted')
      await scene.untilDead(20)
      expect(member.consumer.health()).toMatchObject({
        status: 'degraded',
        problems: [expect.stringMatching('resume')],
      })
      isBad = false
      member.consumer.resume()
      await scene.untilDone()
      expect(await scene.dead()).toHaveLength(20)
      expect(scene.calls.filter(({ offset }) => offset === '20')).toHaveLength(2)
      expect(member.consumer.health().status).toBe('ok')
    })

    it('a few bad ones among many are dead-lettered as ever', async () => {
      const scene = await given.scene()
      const act = ({ offset }: Call): void => {
        if (Number(offset) % 4 === 0) throw new NonRetryableError('no such customer')
      }
      const member = await scene.join(act, { deadLetterLimit: { share: 0.5, burst: 20 } })
      await scene.produce(numbered(0, 200))
      await scene.untilDone()
      expect(await scene.dead()).toHaveLength(50)
      expect(member.hooks.counts.halted).toBe(0)
    })
  })
}
