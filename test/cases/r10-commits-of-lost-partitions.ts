/**
 * R10: commits for partitions that are gone.
 * Given a member that commits seldom, with handled and uncommitted records on all of its partitions.
 * When another member joins and takes some of them.
 * Then what was handled is committed before they go, or discarded, never afterwards: no record is handled twice, no
 * commit is lower than one before it, and the first member sends none for a partition that it has lost.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { numbered } from './numbered'

export function r10(given: Given): void {
  it('R10 P7 rule 13: what is handled and not committed when a rebalance comes is committed first', async () => {
    const scene = await given.scene({ partitions: 4 })
    const options = { commitInterval: '60s' }
    const first = await scene.join(undefined, options)
    await given.stage().until(() => first.faults.commits.length > 0, 'the first commit, so that the next is far away')
    for (let partition = 0; partition < 4; partition++) await scene.produce(numbered(5), partition)
    await scene.untilCalls(20)
    const second = await scene.join(undefined, options)
    await scene.untilShared([first, second], 4)
    const before = first.faults.commits.length
    const lost = scene.partitionsOf(second)
    for (let partition = 0; partition < 4; partition++) await scene.produce(numbered(5), partition)
    await scene.untilCalls(40)
    await first.stop()
    await second.stop()
    const late = first.faults.commits.slice(before).filter(({ partition }) => lost.includes(partition))
    expect(late).toEqual([])
    const places = scene.calls.map(({ partition, offset }) => `${partition}@${offset}`)
    expect(new Set(places).size).toBe(40)
    expect(places).toHaveLength(40)
    scene.expectNoStepBack()
    expect([...(await scene.committed()).values()]).toEqual([10n, 10n, 10n, 10n])
  })

  it('R10 P7: a range that could not be committed in time is discarded, and handled by the new owner', async () => {
    const scene = await given.scene({ partitions: 2 })
    const first = await scene.join()
    await given.stage().until(() => first.faults.commits.length > 0, 'the first commit')
    const refused = first.faults.commit('reject')
    for (const partition of [0, 1]) await scene.produce(numbered(5), partition)
    await scene.untilCalls(10)
    const second = await scene.join()
    await scene.untilShared([first, second], 2)
    const [lost] = scene.partitionsOf(second)
    await scene.untilCalls(5, ({ member, partition }) => member === 1 && partition === lost)
    const before = first.faults.commits.length
    refused.stop()
    await scene.untilDone()
    await first.stop()
    expect(first.faults.commits.slice(before).filter(({ partition }) => partition === lost)).toEqual([])
    scene.expectNoStepBack()
  })
}
