/**
 * R63: one group, different topics.
 * Given one process with a main topic and three waits; or two consumers of one group id that read different main topics.
 * When records come that fail 0, 1, 2 and 3 times, or records for both topics.
 * Then every group has an id of its own and a member that owns all partitions of its topics and no others, every record is
 * handled as often as it should be, and a second consumer of the group in one process is refused unless it is asked for.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'

export function r63(given: Given): void {
  it('R63: main topic and three waits in one process: four groups, each with all of its own', async () => {
    const schedule = ['200ms', '400ms', '600ms']
    const scene = await given.scene({ partitions: 2, schedule })
    const { consumer } = await scene.join(({ value, attempt }) => {
      if (attempt <= Number(value)) throw new RetryableError('not yet')
    })
    const groups = consumer.health().groups
    const ids = groups.map(({ groupId }) => groupId)
    expect(ids).toEqual([scene.group, ...schedule.map((delay) => scene.retryGroup(delay))])
    expect(new Set(ids).size).toBe(4)
    for (const id of ids) expect(await given.stage().members(id), id).toHaveLength(1)
    const owned = groups.map(({ partitions }) =>
      partitions.map(({ topic, partition }) => `${topic}/${partition}`).sort(),
    )
    const topics = [scene.topic, ...schedule.map((delay) => scene.retry(delay))]
    expect(owned).toEqual(topics.map((topic) => [`${topic}/0`, `${topic}/1`]))
    for (const partition of [0, 1]) await scene.produce(['0', '1', '2', '3'], partition)
    await scene.untilDone()
    const attempts = (value: string): number[] =>
      scene.calls.filter((call) => call.value === value && call.partition === 0).map(({ attempt }) => attempt)
    expect(['0', '1', '2', '3'].map(attempts)).toEqual([[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]])
    expect(await scene.dead()).toEqual([])
  })

  it('R63: two consumers of one group with different topics: refused, and where it is asked for each gets its own', async () => {
    const one = await given.scene({ partitions: 2 })
    const two = await given.scene({ partitions: 2, group: one.group })
    const first = await one.join(undefined, { sameGroupInProcess: 'refuse' })
    const refused = two.member(undefined, { sameGroupInProcess: 'refuse', kafka: given.stage().client() })
    await expect(given.stage().during(refused.consumer.start())).rejects.toMatchObject({
      code: 'RETRYLINE_GROUP_IN_USE',
    })
    await first.stop()

    await one.join()
    await two.join()
    for (const partition of [0, 1]) {
      await one.produce(['a', 'b'], partition)
      await two.produce(['c', 'd'], partition)
    }
    await one.untilDone()
    await two.untilDone()
    expect(one.values().sort()).toEqual(['a', 'a', 'b', 'b'])
    expect(two.values().sort()).toEqual(['c', 'c', 'd', 'd'])
  })
}
