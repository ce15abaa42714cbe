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
