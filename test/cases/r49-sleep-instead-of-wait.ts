/**
 * R49: a sleep instead of a wait.
 * Given a wait that is several times the session time-out (ten times on the fake broker).
 * When a record fails and waits for its next attempt, while others of its partition come.
 * Then the others are handled at once, it is handled when it is due, and the wait has caused no rebalance, no crash, no
 * refused commit, and no change of a member.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'

/** The least that the brokers take: Kafka's default on the fake, what test/helpers/broker-config.ts says on ours. ms. */
const SESSION = { fake: 6_000, real: 1_000 }
const DELAY = { fake: '1m', real: '4s' }

export function r49(given: Given): void {
  it('R49 P2 P7: a wait far longer than a session disturbs nobody', async () => {
    const stage = given.stage()
    const [delay, session] = [DELAY[stage.kind], SESSION[stage.kind]]
    const scene = await given.scene({ schedule: [delay] })
    const { consumer, hooks } = await scene.join(
      ({ attempt, value }) => {
        if (attempt === 1 && value === 'fails') throw new RetryableError('not now')
      },
      { sessionTimeout: session, heartbeatInterval: 200, rebalanceTimeout: '10s' },
    )
    const groups = [scene.group, scene.retryGroup(delay)]
    const membersOf = (): Promise<string[][]> => Promise.all(groups.map((group) => stage.members(group)))
    const before = await membersOf()
    const told = (): number[] => [hooks.counts.rebalanced, hooks.counts.crashed, hooks.counts.commitFailed]
    expect(told()).toEqual([2, 0, 0])
    await scene.produce(['fails', 'good'])
    await scene.untilCalls(2)
    await stage.until(() => consumer.health().groups[1]?.partitions[0]?.state === 'waiting', 'it waits')
    const producedAt = stage.now()
    await scene.produce(['meanwhile'])
    await scene.untilCalls(1, ({ value }) => value === 'meanwhile')
    const { startedAt: meanwhile } = scene.calls.find(({ value }) => value === 'meanwhile')!
    expect(meanwhile - producedAt).toBeLessThan(2 * session)
    expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })
    await scene.untilDone()
    expect(scene.values()).toEqual(['fails', 'good', 'meanwhile', 'fails'])
    scene.expectNeverEarly()
    expect(told()).toEqual([2, 0, 0])
    expect(await membersOf()).toEqual(before)
  })
}
