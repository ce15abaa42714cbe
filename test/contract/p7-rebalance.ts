import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src'
import { seeded } from './seeded'
import type { Given } from './promises'
import type { Call } from './scene'

const numbered = (count: number, prefix = 'r'): string[] => Array.from({ length: count }, (_, n) => `${prefix}${n}`)

function expectMonotonic(seen: Map<number, bigint[]>): void {
  for (const [partition, offsets] of seen) {
    const known = offsets.filter((offset) => offset >= 0n)
    expect(known, `committed on ${partition}`).toEqual([...known].sort((a, b) => (a < b ? -1 : 1)))
  }
}

const places = (calls: readonly Call[]): string[] =>
  calls.map(({ partition, offset }) => `${partition}@${offset}`).sort()

const all = (partitions: number, count: number): string[] =>
  Array.from({ length: partitions }, (_, p) => Array.from({ length: count }, (_, n) => `${p}@${n}`))
    .flat()
    .sort()

/** P7, the half about members that come and go. */
export function rebalancePromises(given: Given): void {
  /** Member 0 with the first record of each of four partitions in a handler, and four more waiting behind each. */
  async function busy(options: Record<string, unknown> = {}) {
    const scene = await given.scene({ partitions: 4 })
    const gate = scene.gate()
    const act = ({ member, offset }: Call): unknown => (member === 0 && offset === '0' ? gate.wait() : undefined)
    const first = await scene.join(act, options)
    for (let partition = 0; partition < 4; partition++) await scene.produce(numbered(5), partition)
    await scene.untilCalls(4)
    const watch = given.stage().watch(scene.group, scene.topic)
    return { scene, gate, first, act, watch }
  }

  describe('P7 rebalance-safe: members', () => {
    it('rule 5: a member joins while handlers run: what moves is dropped here and handled there, what stays goes on', async () => {
      const { scene, gate, first, act, watch } = await busy()
      const second = await scene.join(act)
      await scene.untilShared([first, second], 4)
      const [kept, moved] = [scene.partitionsOf(first), scene.partitionsOf(second)]
      await scene.untilCalls(10, ({ member }) => member === 1)
      gate.open()
      await scene.untilDone()

      const mine = scene.calls.filter(({ member }) => member === 0)
      // Of what moved only that was handled here which had begun; of what stayed each record once.
      expect(places(mine.filter(({ partition }) => moved.includes(partition)))).toEqual(moved.map((p) => `${p}@0`))
      expect(places(mine.filter(({ partition }) => kept.includes(partition)))).toEqual(
        kept.flatMap((p) => [0, 1, 2, 3, 4].map((n) => `${p}@${n}`)),
      )
      expect(first.hooks.counts.late).toBe(moved.length)
      const rebalances = first.hooks.events('rebalanced').filter(({ tier }) => tier === 'main')
      expect(rebalances.at(-1)).toMatchObject({ kept: 2, removed: 2, dropped: 8 })
      expect(first.hooks.counts.reopened).toBe(0)
      expect(first.faults.commits.filter(({ partition, offset }) => moved.includes(partition) && offset > 0n)).toEqual(
        [],
      )
      expectMonotonic(await watch.stop())
      scene.expectNoStepBack()
    })

    it('a member leaves: the others take over, and nothing is handled twice', async () => {
      const scene = await given.scene({ partitions: 4 })
      const [first, second] = [await scene.join(), await scene.join()]
      await scene.untilShared([first, second], 4)
      for (let partition = 0; partition < 4; partition++) await scene.produce(numbered(20), partition)
      await scene.untilCalls(20)
      await second.stop()
      await scene.untilDone()
      await scene.untilShared([first], 4)
      expect(places(scene.calls)).toEqual(all(4, 20))
      scene.expectNoStepBack()
    })

    it('rule 14: a record that comes again while its handler runs here joins that call', async () => {
      const scene = await given.scene()
      const gate = scene.gate()
      const first = await scene.join(({ member }) => member === 0 && gate.wait())
      await scene.produce(['a'])
      await scene.untilCalls(1)
      // The client crashes and comes back as another member, while the handler still runs.
      first.faults.crashAtBatch(scene.topic)
      await scene.produce(['b'])
      await given.stage().until(() => first.hooks.counts.restarted === 1, 'the client is back')
      await given.stage().until(() => first.hooks.counts.skipped === 1, 'it has come again, and joined')
      gate.open()
      await scene.untilDone()
      expect(scene.values()).toEqual(['a', 'b'])
    })

    it.each([21, 22])('members come and go while records flow (seed %i)', async (seed) => {
      const random = seeded(seed)
      const scene = await given.scene({ partitions: 6 })
      const handled = new Set<string>()
      const act = async ({ value, attempt }: Call): Promise<void> => {
        await given.stage().takes(Math.floor(random() * 10))
        if (attempt === 1 && random() < 0.15) throw new RetryableError('the shop is closed')
        handled.add(String(value))
      }
      const options = { ordering: seed % 2 === 0 ? 'key' : 'unordered', maxBufferedRecords: 60 }
      const watch = given.stage().watch(scene.group, scene.topic)
      const live = [await scene.join(act, options)]
      for (let round = 0; round < 5; round++) {
        for (let n = 0; n < 60; n++) await scene.produce([{ key: `k${n % 7}`, value: `${round}:${n}` }], n % 6)
        if (live.length < 3 && random() < 0.7) live.push(await scene.join(act, options))
        else if (live.length > 1) await live.splice(Math.floor(random() * live.length), 1)[0]?.stop()
      }
      await scene.untilDone()
      expect(handled.size).toBe(300)
      expectMonotonic(await watch.stop())
      scene.expectNoStepBack()
      for (const { hooks } of scene.members) expect(hooks.counts.crashed).toBe(0)
    })
  })
}
