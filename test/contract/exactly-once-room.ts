/** P1 with `delivery: 'exactly-once'`, where a commit has no room to say all that is done beyond its offset. */
import { describe, expect, it } from 'vitest'
import { unpackCommit } from '../../src/consume/done-beyond'
import type { Given } from './promises'
import { header, type Call, type Scene } from './scene'

const EXACTLY = { delivery: 'exactly-once', crashLimit: false }

export function exactlyOnceRoomPromises(given: Given): void {
  const stage = () => given.stage()

  async function deadOffsets(scene: Scene): Promise<number[]> {
    return (await scene.dead()).map((one) => Number(header(one, 'x-original-offset'))).sort((a, b) => a - b)
  }

  describe('exactly once: no room in the metadata', () => {
    for (const longest of [0, 9, 18]) {
      it(`a broker that takes ${longest} characters: what fails goes through, once, and a failed transaction is no end`, async () => {
        const scene = await given.scene({ schedule: [] })
        const gate = scene.gate()
        const act = async ({ value }: Call): Promise<void> => {
          if (value === 'stuck') await gate.wait()
          if (value !== 'ok') throw new Error('the shop is closed')
        }
        const member = scene.member(act, { ...EXACTLY, ordering: 'unordered', concurrency: 4, crashLimit: 3 })
        member.faults.longestMetadata = longest
        await stage().during(member.consumer.start())
        await scene.produce(['stuck', ...Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? 'bad' : 'ok'))])
        await scene.untilCalls(61)
        const fault = member.faults.transaction('publish', 'reject', { times: 2 })
        gate.open()
        await scene.untilDone()
        expect(fault.hits).toBe(2)
        expect(await deadOffsets(scene)).toEqual([0, ...Array.from({ length: 20 }, (_, n) => 3 * n + 1)])
        const told = member.hooks.events('problem').filter(({ error }) => error.includes('offset.metadata.max.bytes'))
        expect(told).toHaveLength(1)
        scene.expectNoStepBack()
      })
    }

    it('full: the partition is proved to be ours by what was said before, and transactions go on', async () => {
      const scene = await given.scene({ schedule: [] })
      const gate = scene.gate()
      const act = async ({ offset, value }: Call): Promise<void> => {
        if (offset === '0') await gate.wait()
        if (value === 'bad') throw new Error('the shop is closed')
      }
      const member = await scene.join(act, {
        ...EXACTLY,
        ordering: 'key',
        concurrency: 16,
        maxBufferedRecords: 60_000,
      })
      // Six offsets to a character: every second one waits behind the first, which is at work.
      const count = 23_000
      const records = Array.from({ length: count }, (_, n) => ({
        key: n % 2 === 0 ? 'stuck' : null,
        value: n === 0 || n > count - 3 ? 'bad' : 'ok',
      }))
      await scene.produce(records)
      await scene.untilCalls(count / 2 + 1)
      const said = (): bigint => {
        const last = member.faults.commits.at(-1)
        return unpackCommit(last?.offset ?? 0n, last?.metadata ?? '')?.done.at(-1)?.to ?? 0n
      }
      await stage().until(
        () => said() > 22_000n,
        () => `the metadata is full, not up to ${said()}`,
      )
      const fault = member.faults.transaction('publish', 'reject', { times: 1 })
      gate.open()
      await stage().until(async () => (await scene.dead()).length === 3, 'all of them are dead letters')
      expect(fault.hits).toBe(1)
      await scene.untilDone()
      expect(await deadOffsets(scene)).toEqual([0, count - 2, count - 1])
      scene.expectNoStepBack()
    })

    it('nothing new is started beside hundreds that wait to be published', async () => {
      const scene = await given.scene({ schedule: [] })
      const gate = scene.gate()
      const fails = (): never => {
        throw new Error('the shop is closed')
      }
      const member = await scene.join(fails, { ...EXACTLY, ordering: 'unordered', concurrency: 16 })
      const held = member.faults.transaction('commit', gate.wait(), { times: 1 })
      await scene.produce(Array.from({ length: 1_500 }, (_, n) => `r${n}`))
      await stage().until(() => held.hits === 1, 'a transaction is under way')
      await scene.untilCalls(400)
      await stage().during(stage().takes(1_000))
      expect(scene.calls.length).toBeLessThan(600)
      gate.open()
      await scene.untilDone()
      expect(await deadOffsets(scene)).toEqual(Array.from({ length: 1_500 }, (_, n) => n))
    })
  })
}
