/**
 * R47: long handlers, thrown out of the group.
 * Given two members whose session time-out is a third of what a handler takes, each with a handler at work on every
 * partition and a second record waiting behind it.
 * When a third member joins meanwhile.
 * Then it has joined before any of those handlers has ended, nobody was thrown out (the member ids stay), a record of a
 * partition that moved is handled twice at most, one that had not started starts only where its partition is now, and
 * everything is committed. So it is with handlers that are short and many: nothing starts between the news of a rebalance
 * and its end, so that no more than what was in flight comes twice.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'

/** The least that the brokers take: Kafka's default on the fake, what test/helpers/broker-config.ts says on ours. ms. */
const SESSION = { fake: 6_000, real: 1_000 }
const PARTITIONS = [0, 1, 2, 3, 4, 5]

export function r47(given: Given): void {
  it('R47 P7: heartbeats go on during handlers, and a rebalance waits for none of them', async () => {
    const stage = given.stage()
    const session = SESSION[stage.kind]
    const scene = await given.scene({ partitions: PARTITIONS.length, schedule: [] })
    const options = { sessionTimeout: session, heartbeatInterval: 200, rebalanceTimeout: '20s' }
    const act = ({ value }: { value: string | null }) => value === 'long' && stage.takes(3 * session)
    const first = await scene.join(act, options)
    const second = await scene.join(act, options)
    await scene.untilShared([first, second], PARTITIONS.length)
    const before = await stage.members(scene.group)
    for (const partition of PARTITIONS) await scene.produce(['long', 'behind'], partition)
    await scene.untilCalls(PARTITIONS.length)
    // Longer than a session, all of it inside handlers.
    await stage.during(stage.takes(1.5 * session))

    const third = await scene.join(act, options)
    await scene.untilShared([first, second, third], PARTITIONS.length)
    const started = scene.calls.slice(0, PARTITIONS.length)
    expect(started.map(({ value, endedAt }) => [value, endedAt])).toEqual(PARTITIONS.map(() => ['long', undefined]))
    const after = await stage.members(scene.group)
    expect(after).toHaveLength(3)
    expect(after).toEqual(expect.arrayContaining(before))

    await scene.untilDone()
    expect(await stage.members(scene.group)).toEqual(expect.arrayContaining(after))
    const moved = scene.partitionsOf(third)
    for (const partition of PARTITIONS) {
      const own = scene.calls.filter((call) => call.partition === partition)
      const long = own.filter(({ value }) => value === 'long')
      const behind = own.filter(({ value }) => value === 'behind')
      expect(long.map(({ member }) => member).slice(1)).toEqual(moved.includes(partition) ? [2] : [])
      expect(behind).toHaveLength(1)
      if (moved.includes(partition)) expect(behind[0]?.member).toBe(2)
    }
    expect(moved.length).toBeGreaterThan(0)
    for (const { hooks } of scene.members) expect(hooks.counts.crashed + hooks.counts.abandoned).toBe(0)
    scene.expectNoStepBack()
  })

  it('R47 P7: nothing starts between the news of a rebalance and its end', async () => {
    const stage = given.stage()
    const scene = await given.scene({ partitions: 4, schedule: [] })
    // The first to hear of it waits so long for the second: time enough to start many.
    const options = { heartbeatInterval: 700 }
    const act = () => stage.takes(20)
    const first = await scene.join(act, options)
    const second = await scene.join(act, options)
    await scene.untilShared([first, second], 4)
    const values = Array.from({ length: 150 }, (_, n) => `r${n}`)
    for (const partition of [0, 1, 2, 3]) await scene.produce(values, partition)
    await scene.untilCalls(40)
    await scene.join(act, options)
    await scene.untilDone()
    for (const partition of [0, 1, 2, 3]) {
      const seen = scene.calls.filter((call) => call.partition === partition).map(({ value }) => value)
      expect(new Set(seen).size).toBe(values.length)
      expect(seen.length, `calls of partition ${partition}`).toBeLessThanOrEqual(values.length + 1)
    }
    scene.expectNoStepBack()
  })
}
