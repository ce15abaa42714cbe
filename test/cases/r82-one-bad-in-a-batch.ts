/**
 * R82: one bad record, the whole batch dead.
 * Given a batch handler and 100 records of which one can never be handled.
 * When it names that one, or just throws, at the first attempt and on a retry topic.
 * Then that one is on the dead letter topic and the 99 are not: they were handled, in order, and all 100 are committed.
 */
import { expect, it } from 'vitest'
import { NonRetryableError, RetryableError } from '../../src'
import { numbered } from '../contract/batch-failures'
import { Batching, named, type BatchSeen } from '../contract/batching'
import type { Given } from '../contract/promises'

const BAD = 'r042'

const names = (call: BatchSeen): void => {
  const bad = named(call, BAD)
  if (bad) call.ctx.fail(bad, new NonRetryableError('no such table'))
}
const throws = (call: BatchSeen): void => {
  if (named(call, BAD)) throw new NonRetryableError('no such table')
}

export function r82(given: Given): void {
  it.each([
    { way: 'names it', act: names, mostCalls: 1 },
    // 100, 50, 25, 13, 7, 4, 2, 1, and the other halves.
    { way: 'throws', act: throws, mostCalls: 15 },
  ])(
    'R82: the handler $way: one bad record of a hundred takes none of the others along',
    async ({ act, mostCalls }) => {
      const scene = await given.scene({ schedule: ['200ms'] })
      const batching = new Batching(scene)
      await scene.produce(numbered(100))
      const handled: string[] = []
      await batching.join((call) => {
        act(call)
        handled.push(...call.values.filter((value) => value !== BAD))
      })
      await scene.untilDone()
      expect((await scene.dead()).map(({ value }) => String(value))).toEqual([BAD])
      expect(handled).toEqual(numbered(100).filter((value) => value !== BAD))
      expect(await given.stage().records(scene.retry('200ms'))).toEqual([])
      if (given.stage().kind === 'fake') expect(batching.seen.length).toBeLessThanOrEqual(mostCalls)
      expect((await scene.committed()).get(0)).toBe(100n)
      scene.expectNoStepBack()
    },
  )

  it.each([
    { way: 'names it', act: names },
    { way: 'throws', act: throws },
  ])('R82: the handler $way on a retry topic: so there too', async ({ act }) => {
    const scene = await given.scene({ schedule: ['200ms'] })
    const batching = new Batching(scene)
    await scene.produce(numbered(100))
    const handled = new Set<string>()
    await batching.join((call) => {
      if (call.topic === scene.topic) throw new RetryableError('the warehouse is busy')
      act(call)
      for (const value of call.values) if (value !== BAD) handled.add(value)
    })
    await scene.untilDone()
    expect((await scene.dead()).map(({ value }) => String(value))).toEqual([BAD])
    expect([...handled].sort()).toEqual(numbered(100).filter((value) => value !== BAD))
    expect(await given.stage().records(scene.retry('200ms'))).toHaveLength(100)
  })
}
