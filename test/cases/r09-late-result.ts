/**
 * R09: a late result after a rebalance.
 * Given a member whose handlers hold the first record of each of four partitions.
 * When another member joins, takes some of the partitions and finishes them, and only then the first handlers return.
 * Then nothing throws, no consumer crashes, and the late results are told and commit nothing over the new owner.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { numbered } from './numbered'
import { expectRising } from './rising'

export function r09(given: Given): void {
  it('R09 P7: a late result never commits over the new owner', async () => {
    const scene = await given.scene({ partitions: 4 })
    const gate = scene.gate()
    const act = ({ member, offset }: { member: number; offset: string }): unknown =>
      member === 0 && offset === '0' ? gate.wait() : undefined
    const first = await scene.join(act)
    for (let partition = 0; partition < 4; partition++) await scene.produce(numbered(5), partition)
    await scene.untilCalls(4)
    const watch = given.stage().watch(scene.group, scene.topic)
    const second = await scene.join(act)
    await scene.untilShared([first, second], 4)
    const moved = scene.partitionsOf(second)
    const isDone = async (): Promise<boolean> => {
      const committed = await scene.committed()
      return moved.every((partition) => committed.get(partition) === 5n)
    }
    await given.stage().until(isDone, 'the new owner is done')
    gate.open()
    await given.stage().until(() => first.hooks.counts.late === moved.length, 'the late results are noticed')
    await scene.untilDone()
    expect(await isDone()).toBe(true)
    expectRising(await watch.stop())
    const over = first.faults.commits.filter(({ partition, offset }) => moved.includes(partition) && offset > 0n)
    expect(over).toEqual([])
    expect(first.hooks.counts.crashed).toBe(0)
  })
}
