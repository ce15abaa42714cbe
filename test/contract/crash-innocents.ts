/** Deaths that are no record's fault, or another's: who is held to be guilty of them, and who never is. */
import { describe, expect, it } from 'vitest'
import { unpackCommit } from '../../src/consume/done-beyond'
import { numbered, supervise } from './crash-loop'
import type { Given } from './promises'
import { header, type Call, type Member, type Scene } from './scene'
import { seeded } from './seeded'

export function crashInnocentPromises(given: Given): void {
  const stage = () => given.stage()
  const marksIn = (scene: Scene, member: Member) =>
    member.faults.commits
      .filter(({ topic }) => topic === scene.topic)
      .map(({ partition, offset, metadata }) => ({ partition, marks: unpackCommit(offset, metadata)?.marks }))

  describe('crash loops: the innocent', () => {
    for (const seed of [1, 2, 3]) {
      it(`twenty deaths during normal work dead-letter nothing: unordered, sixteen at once, seed ${seed}`, async () => {
        const random = seeded(seed)
        const scene = await given.scene({ partitions: 3 })
        const gate = scene.gate()
        const dead = new Set<number>()
        const ended = new Map<number, number>()
        const act = async (call: Call): Promise<void> => {
          if (!dead.has(call.member)) await stage().takes(5)
          if (dead.has(call.member)) await gate.wait()
          else ended.set(call.member, (ended.get(call.member) ?? 0) + 1)
        }
        let unclean = 0
        for (let n = 0; n <= 20; n++) {
          for (const partition of [0, 1, 2]) await scene.produce(numbered(60 * n, 60 * n + 60), partition)
          const member = await scene.join(act, { ordering: 'unordered', concurrency: 16 })
          const goal = n === 20 ? 0 : 60 + Math.floor(random() * 60)
          await stage().until(() => (ended.get(n) ?? 0) >= goal, `process ${n} has done ${goal} records`)
          if (n === 20) await scene.untilDone()
          else {
            // Between two steps of a handler, so that some are at work.
            dead.add(n)
            await stage().during(member.faults.kill())
          }
          unclean += member.hooks.events('unclean').length
        }
        expect(unclean, 'take-overs from the dead').toBeGreaterThanOrEqual(20)
        expect(await scene.dead()).toEqual([])
        const handled = scene.calls.filter(({ endedAt }) => endedAt !== undefined)
        expect(new Set(handled.map(({ partition, value }) => `${partition} ${value}`)).size).toBe(3 * 21 * 60)
        expect((await scene.committed()).get(0)).toBe(21n * 60n)
        scene.expectNoStepBack()
      })
    }

    it('one that is marked as at work while the deadly record of an unsuspected lane runs is no dead letter', async () => {
      const scene = await given.scene({ partitions: 4 })
      const deadly: string[] = []
      let ended = 0
      const otherwise = async (call: Call): Promise<void> => {
        if (call.value !== 'slow') return
        // A lane that nobody suspects gets what takes the process down.
        const next = deadly.length + 1
        if (next <= 3) {
          deadly.push(`deadly ${next}`)
          await scene.produce([`deadly ${next}`], next)
        }
        await stage().takes(400)
        // A process in which one of those was called is dead, and does not come to this point.
        if (scene.calls.some(({ value, member }) => member === call.member && value !== 'slow')) return
        ended++
      }
      // Twice is allowed: a process may die of the next one before its commit tells of the dead letter.
      const named = async (): Promise<string[]> => [
        ...new Set((await scene.dead()).map(({ value }) => String(value)).sort()),
      ]
      await scene.produce(['slow'], 0)
      const deaths = await supervise(
        given,
        scene,
        { ordering: 'unordered', concurrency: 16 },
        ({ value }) => value !== null && deadly.includes(value),
        async () => ended > 0 && (await named()).length === deadly.length,
        otherwise,
      )
      await scene.untilDone()
      const dead = await scene.dead()
      expect(await named()).toEqual(deadly)
      expect(new Set(dead.map((one) => header(one, 'x-failure-reason')))).toEqual(new Set(['crash-loop']))
      expect(deaths).toBeGreaterThan(3)
      // Two deaths of others are held against it; so it ran once more, with nothing beside it, and was out of suspicion.
      const marks = scene.members.flatMap((member) => marksIn(scene, member).filter(({ partition }) => partition === 0))
      expect(marks.flatMap((one) => one.marks?.suspects ?? [])).toContainEqual(
        expect.objectContaining({ offset: 0n, deaths: 2, running: true }),
      )
      expect(ended).toBe(1)
    })

    it('a rebalance says the end of the work, and a lane that was careful hands its care on without a death more', async () => {
      const scene = await given.scene({ partitions: 2 })
      const gate = scene.gate()
      const options = { ordering: 'unordered', concurrency: 4 }
      for (const partition of [0, 1]) await scene.produce(numbered(0, 8), partition)
      const first = await scene.join(() => gate.wait(), options)
      await scene.untilCalls(4)
      await stage().during(first.faults.kill())

      const held = scene.gate()
      const second = await scene.join(() => held.wait(), options)
      await scene.untilCalls(2, ({ member }) => member === 1)
      expect(second.hooks.events('unclean')).toHaveLength(2)
      const third = await scene.join(() => held.wait(), options)
      await scene.untilShared([second, third], 2)
      const [moved] = scene.partitionsOf(third)
      const last = marksIn(scene, second)
        .filter(({ partition }) => partition === moved)
        .at(-1)
      expect(last?.marks?.open).toBeUndefined()
      expect(last?.marks?.careful).toBeGreaterThan(0)
      expect(last?.marks?.suspects.filter(({ running }) => running)).toEqual([])

      // Who comes next goes on with care, and has found nobody dead.
      await scene.untilCalls(1, ({ member }) => member === 2)
      expect(third.hooks.events('unclean')).toEqual([])
      const state = third.consumer.health().groups[0]?.partitions.find(({ partition }) => partition === moved)?.state
      expect(state).toBe('careful')
      const suspects = marksIn(scene, third)
        .filter(({ partition }) => partition === moved)
        .at(-1)?.marks?.suspects
      expect(suspects?.map(({ deaths }) => deaths)).toEqual([1])
      held.open()
      await scene.untilDone()
      expect(await scene.dead()).toEqual([])
    })

    it('a process that is told to stop, and killed before its handlers have ended, is no death: a deploy that kills hard', async () => {
      const scene = await given.scene()
      const gate = scene.gate()
      await scene.produce(numbered(0, 4))
      for (let n = 0; n < 2; n++) {
        const member = await scene.join(() => gate.wait(), { ordering: 'unordered', concurrency: 4 })
        // All at once: nobody is suspected of anything.
        await scene.untilCalls(4, (call) => call.member === n)
        expect(member.hooks.events('unclean')).toEqual([])
        void member.consumer.stop({ timeout: '1h' })
        await stage().until(() => {
          const said = marksIn(scene, member).at(-1)
          return said !== undefined && said.marks?.open === undefined
        }, 'the broker knows that the process is on its way out')
        await stage().during(member.faults.kill())
      }
      const last = await scene.join(undefined, { ordering: 'unordered', concurrency: 4 })
      await scene.untilDone()
      expect(last.hooks.events('unclean')).toEqual([])
      expect(await scene.dead()).toEqual([])
    })

    it('a record that takes its process down at an attempt of a tier is a dead letter with its attempt, and no other is', async () => {
      const scene = await given.scene({ partitions: 2 })
      for (const partition of [0, 1]) await scene.produce(numbered(0, 6), partition)
      await scene.produce(['deadly'], 1)
      for (const partition of [0, 1]) await scene.produce(numbered(6, 12), partition)
      const deaths = await supervise(
        given,
        scene,
        { ordering: 'unordered', concurrency: 16 },
        ({ value, attempt }) => value === 'deadly' && attempt === 2,
        async () => (await scene.dead()).length > 0,
        ({ attempt }) => {
          if (attempt === 1) throw new Error('all of them are tried again')
        },
      )
      await scene.untilDone()
      const dead = await scene.dead()
      expect(deaths).toBe(3)
      expect(dead.map(({ value }) => String(value))).toEqual(['deadly'])
      expect(header(dead[0]!, 'x-failure-reason')).toBe('crash-loop')
      expect(header(dead[0]!, 'x-attempt')).toBe('2')
      const again = scene.calls.filter(({ attempt, value }) => attempt === 2 && value !== 'deadly')
      expect(new Set(again.map(({ partition, value }) => `${partition} ${value}`)).size).toBe(24)
      scene.expectNeverEarly()
      scene.expectNoStepBack(scene.retry('200ms'))
    })
  })
}
