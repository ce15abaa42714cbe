import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src'
import { seeded } from './seeded'
import type { Given } from './promises'
import type { Call } from './scene'

const FAILS = (): never => {
  throw new RetryableError('the shop is closed')
}

const SEEDS = [11, 12, 13]

/** The most of these calls that were under way at once. */
function mostAtOnce(
  log: readonly (readonly [call: Call, step: 1 | -1])[],
  which: (call: Call) => string,
): Map<string, number> {
  const now = new Map<string, number>()
  const most = new Map<string, number>()
  for (const [call, step] of log) {
    const key = which(call)
    now.set(key, (now.get(key) ?? 0) + step)
    most.set(key, Math.max(most.get(key) ?? 0, now.get(key) ?? 0))
  }
  return most
}

/** P6: first attempts follow the ordering mode, and a retry comes after what followed it. */
export function orderPromises(given: Given): void {
  /** 60 records over 3 partitions and 5 keys, handlers of random length, some of which fail once. */
  async function load(seed: number, ordering: string, concurrency: number) {
    const random = seeded(seed)
    const scene = await given.scene({ partitions: 3 })
    const log: [Call, 1 | -1][] = []
    await scene.join(
      async (call) => {
        log.push([call, 1])
        try {
          await given.stage().takes(Math.floor(random() * 15))
          if (call.attempt === 1 && random() < 0.2) FAILS()
        } finally {
          log.push([call, -1])
        }
      },
      { ordering, concurrency },
    )
    for (let n = 0; n < 60; n++) {
      await scene.produce([{ key: `k${Math.floor(random() * 5)}`, value: `r${n}` }], n % 3)
    }
    await scene.untilDone()
    const first = log.filter(([{ attempt }]) => attempt === 1)
    return { scene, log, first, started: first.filter(([, step]) => step === 1).map(([call]) => call) }
  }

  const inOrder = (calls: readonly Call[]): void => {
    const offsets = calls.map(({ offset }) => BigInt(offset))
    expect(offsets).toEqual([...offsets].sort((a, b) => (a < b ? -1 : 1)))
  }

  describe('P6 order', () => {
    it.each(SEEDS)('partition: one at a time, in order (seed %i)', async (seed) => {
      const { started, log } = await load(seed, 'partition', 16)
      for (const partition of [0, 1, 2]) inOrder(started.filter((call) => call.partition === partition))
      expect(started).toHaveLength(60)
      // The tiers follow it too: no two at once on one partition of the retry topic.
      for (const most of mostAtOnce(log, ({ from }) => `${from.topic}/${from.partition}`).values()) expect(most).toBe(1)
    })

    it.each(SEEDS)('key: one of a key at a time, in order, different keys side by side (seed %i)', async (seed) => {
      const { started, log, first } = await load(seed, 'key', 16)
      const placeOf = ({ from, key }: Call): string => `${from.topic}/${from.partition} ${key}`
      for (const place of new Set(started.map(placeOf))) inOrder(started.filter((call) => placeOf(call) === place))
      for (const most of mostAtOnce(log, placeOf).values()) expect(most).toBe(1)
      expect(Math.max(...mostAtOnce(first, ({ partition }) => String(partition)).values())).toBeGreaterThan(1)
    })

    it.each(SEEDS)('unordered: side by side, and never more than concurrency (seed %i)', async (seed) => {
      const { log, first } = await load(seed, 'unordered', 4)
      const most = mostAtOnce(log, ({ from }) => from.topic)
      for (const count of most.values()) expect(count).toBeLessThanOrEqual(4)
      expect(Math.max(...mostAtOnce(first, ({ topic }) => topic).values())).toBe(4)
    })

    it.each(['partition', 'key'])(
      'pause and throw: the same record again, before what stands behind it (%s)',
      async (ordering) => {
        const scene = await given.scene({ partitions: 2 })
        let resume: (() => void) | undefined
        const member = await scene.join(
          ({ value, payload }) => {
            if (value !== 'held' || resume) return
            resume = payload.pause()
            throw new Error('not now')
          },
          { ordering },
        )
        await scene.produce(['before', 'held', 'behind', 'last'].map((value) => ({ key: 'k', value })))
        await scene.untilCalls(2)
        await scene.witness(1)
        expect(scene.values().filter((value) => value !== 'witness')).toEqual(['before', 'held'])
        expect((await scene.committed()).get(0)).toBe(1n)
        resume?.()
        await scene.untilDone()
        const calls = scene.calls.filter(({ partition }) => partition === 0)
        expect(calls.map(({ value, attempt }) => [value, attempt])).toEqual(
          ['before', 'held', 'held', 'behind', 'last'].map((value) => [value, 1]),
        )
        expect(member.hooks.counts.retried).toBe(0)
      },
    )

    it('partition: no key is too odd to keep its order (key mode)', async () => {
      const scene = await given.scene()
      const keys = ['', Buffer.from([0]), Buffer.from([0xff, 0xfe]), '__proto__', 'k']
      await scene.join(() => given.stage().takes(2), { ordering: 'key' })
      await scene.produce(Array.from({ length: 25 }, (_, n) => ({ key: keys[n % 5] ?? null, value: `${n}` })))
      await scene.untilDone()
      for (let key = 0; key < 5; key++) inOrder(scene.calls.filter(({ value }) => Number(value) % 5 === key))
    })
  })
}
