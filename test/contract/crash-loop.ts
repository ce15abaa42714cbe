import { describe, expect, it } from 'vitest'
import { unpackCommit } from '../../src/consume/done-beyond'
import type { Given } from './promises'
import { header, type Call, type Member, type Scene } from './scene'

export const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, n) => `r${from + n}`)

/** Processes that die of the records that `isDeadly` names, one after the other, as a supervisor starts them. */
export async function supervise(
  given: Given,
  scene: Scene,
  options: Record<string, unknown>,
  isDeadly: (call: Call) => boolean,
  until: () => Promise<boolean>,
  /** What the handler does with any other. */
  otherwise: (call: Call) => unknown = () => undefined,
): Promise<number> {
  const gate = scene.gate()
  const dead = new Set<number>()
  let members: Member[] = []
  const act = (call: Call): unknown => {
    // Nothing that a dead process still does is seen by anybody.
    if (dead.has(call.member)) return gate.wait()
    if (!isDeadly(call)) return otherwise(call)
    dead.add(call.member)
    void members[call.member]!.faults.kill()
    return gate.wait()
  }
  for (let deaths = 0; ; deaths++) {
    expect(deaths, 'processes that died').toBeLessThan(10)
    const member = scene.member(act, options)
    members = scene.members
    await given.stage().during(member.consumer.start())
    let done = false
    await given.stage().until(
      async () => dead.has(scene.members.length - 1) || (done = await until()),
      () => `an end, or the death of process ${deaths}`,
    )
    if (done) return deaths
    await given.stage().during(member.faults.kill())
  }
}

export function crashLoopPromises(given: Given): void {
  const marksOf = (scene: Scene, partition = 0) => {
    const last = scene
      .commits()
      .filter((commit) => commit.partition === partition)
      .at(-1)
    return last && unpackCommit(last.offset, last.metadata)?.marks
  }

  describe('crash loops', () => {
    for (const ordering of ['partition', 'key', 'unordered'] as const) {
      it(`${ordering}: a record that takes its process down is a dead letter after three deaths, and no other is`, async () => {
        const scene = await given.scene({ partitions: 3 })
        for (const partition of [0, 1, 2]) await scene.produce(numbered(0, 12), partition)
        await scene.produce(['deadly'], 1)
        for (const partition of [0, 1, 2]) await scene.produce(numbered(12, 24), partition)
        const deaths = await supervise(
          given,
          scene,
          { ordering, concurrency: 16 },
          ({ value }) => value === 'deadly',
          async () => (await scene.dead()).length > 0,
        )
        await scene.untilDone()
        const dead = await scene.dead()
        expect([deaths, scene.calls.filter(({ value }) => value === 'deadly').length]).toEqual([3, 3])
        expect(dead.map(({ value }) => String(value))).toEqual(['deadly'])
        expect(header(dead[0]!, 'x-failure-reason')).toBe('crash-loop')
        expect(header(dead[0]!, 'x-error')).toContain('3 processes died')
        const handled = scene.calls.filter(({ value }) => value !== 'deadly')
        expect(new Set(handled.map(({ partition, value }) => `${partition} ${value}`)).size).toBe(72)
        scene.expectNoStepBack()
      })
    }

    it('processes that are put out of the group with their commits refused, and live, are not held to be dead', async () => {
      const scene = await given.scene()
      const unclean = (): number => scene.members.reduce((sum, { hooks }) => sum + hooks.counts.unclean, 0)
      let refused: { stop(): void } | undefined
      const act = async ({ member, value }: Call): Promise<void> => {
        if (value !== 'slow' || unclean() >= 2) return
        refused?.stop()
        const { faults } = scene.members[member]!
        // The broker never hears that the record is done, and the client crashes at the next batch. The process does not.
        refused = faults.commit('reject', { topic: scene.topic })
        faults.crashAtBatch(scene.topic)
        await scene.produce(['bait'])
      }
      // Of so many the third owner is most likely none of the two that seem to be dead.
      for (let n = 0; n < 5; n++) await scene.join(act, { crashLimit: 2 })
      await scene.produce(['slow'])
      await given.stage().until(
        () => unclean() >= 2,
        () => `two take-overs that look like deaths: ${unclean()}`,
      )
      refused?.stop()
      await scene.untilDone()
      expect(await scene.dead()).toEqual([])
    })

    it('an open mark stands before the first handler starts, and is gone after a stop', async () => {
      const scene = await given.scene()
      const gate = scene.gate()
      let seen: unknown
      const member = await scene.join(() => {
        seen ??= marksOf(scene)?.open?.records
        return gate.wait()
      })
      await scene.produce(numbered(0, 3))
      await scene.untilCalls(1)
      // The least reserve; and perhaps the record that waited for the mark.
      expect([16, 17]).toContain(seen)
      gate.open()
      await scene.untilDone()
      await member.stop()
      expect(marksOf(scene)).toEqual({ open: undefined, careful: 0, suspects: [] })
      await scene.produce(['more'])
      const next = await scene.join()
      await scene.untilDone()
      expect(next.hooks.events('unclean')).toEqual([])
    })
  })
}
