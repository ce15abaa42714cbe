/**
 * R19: one group's failure comes to every group.
 * Given two groups on one topic, with the same retry topics or with retry topics of their own.
 * When only one of them fails.
 * Then the other one sees the record once: a copy names the group it is for, and every other group skips it, counted.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import type { WireRecord } from '../contract/stage'

const failsFirst = ({ attempt }: { attempt: number }): void => {
  if (attempt === 1) throw new RetryableError('the shop is closed')
}

export function r19(given: Given): void {
  it('R19 P4: two groups on one topic and the same retry topics: each handles only its own failures', async () => {
    const one = await given.scene()
    await one.join(failsFirst)
    const member = await one.join(undefined, { groupId: `${one.group}-other` })
    await one.produce(['a', 'b'])
    await one.untilDone()
    await given.stage().until(() => member.hooks.counts.skipped === 2, 'the other group has skipped both')
    const of = (index: number): string[] =>
      one.calls
        .filter((call) => call.member === index)
        .map(({ value, attempt }) => `${value}#${attempt}`)
        .sort()
    expect(of(1)).toEqual(['a#1', 'b#1'])
    expect(of(0)).toEqual(['a#1', 'a#2', 'b#1', 'b#2'])
  })

  it('R19 P4: two groups with retry topics of their own: the names keep them apart', async () => {
    const scene = await given.scene()
    const other = `${scene.group}-other`
    const names = { topicNames: 'by-topic-and-group', topicSetup: 'create' }
    const failing = await scene.join(failsFirst, names)
    const fine = await scene.join(undefined, { ...names, groupId: other })
    const topics = [failing, fine].map(({ consumer }) => consumer.topics().map(({ topic }) => topic))
    expect(topics[0]!.filter((topic) => topics[1]!.includes(topic))).toEqual([scene.topic])
    await scene.produce(['a'])
    await scene.untilCalls(3)
    await given
      .stage()
      .until(async () => (await scene.committed(scene.topic, other)).get(0) === 1n, 'the other is done too')
    expect(scene.calls.map(({ member, attempt }) => [member, attempt]).sort()).toEqual([
      [0, 1],
      [0, 2],
      [1, 1],
    ])
  })

  it("R19 P4: another group's record on a shared retry topic is skipped and counted, one of a former name is handled", async () => {
    const scene = await given.scene()
    const member = await scene.join(undefined, { formerGroupIds: ['billing-old'] })
    const records = ['shipping', 'billing-old', scene.group].map((group): WireRecord => ({
      value: group,
      headers: [
        ['x-attempt', '2'],
        ['x-due-at', '0'],
        ['x-original-topic', scene.topic],
        ['x-original-partition', '0'],
        ['x-original-offset', '0'],
        ['x-original-timestamp', '1'],
        ['x-consumer-group', group],
      ],
    }))
    await given.stage().produce(scene.retry('200ms'), 0, records)
    await scene.untilDone()
    expect(scene.values()).toEqual(['billing-old', scene.group])
    expect(member.hooks.events('skipped').map(({ why, group }) => [why, group])).toEqual([['other-group', 'shipping']])
  })
}
