/**
 * R83: after the last attempt, a person.
 * Given two waits and a record that fails at every attempt.
 * When it has failed the last time, and time passes, the process is restarted, the schedule grows, and the group rebalances.
 * Then it is on the dead letter topic, once, with the number of attempts that it had, and is never handled again by itself;
 * sent back by hand it is handled again, from attempt 1, with the place and the headers that it first had.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { header } from '../contract/scene'

const ORDERINGS = ['partition', 'key', 'unordered'] as const

const FAILS = (): never => {
  throw new RetryableError('not now')
}

export function r83(given: Given): void {
  it.each(ORDERINGS)('R83 P4: three attempts, then nothing until a person sends it back (%s)', async (ordering) => {
    const stage = given.stage()
    const schedule = ['200ms', '400ms']
    const scene = await given.scene({ schedule })
    const first = await scene.join(FAILS, { ordering })
    await scene.produce([{ value: 'a', headers: [['empty', null]] }])
    await scene.untilDead(1)
    await scene.untilDone()
    await stage.during(stage.takes(1_000))
    await first.stop()
    const options = { ordering, schedule: ['200ms', '400ms', '500ms'], topicSetup: 'create' }
    const second = await scene.join(undefined, options)
    const third = await scene.join(undefined, options)
    await scene.produce(['b'])
    await scene.untilDone()
    await stage.during(stage.takes(1_000))
    expect(scene.calls.map(({ value, attempt }) => `${value}#${attempt}`)).toEqual(['a#1', 'a#2', 'a#3', 'b#1'])
    const dead = await scene.dead()
    expect(dead.map((one) => header(one, 'x-attempt'))).toEqual(['3'])
    expect(header(dead[0]!, 'x-failure-reason')).toBe('exhausted')

    const said = [
      ['x-replayed-from-dlq', 'true'],
      ['x-replay-for-group', scene.group],
    ] as const
    await scene.produce([{ value: dead[0]!.value, headers: [...dead[0]!.headers, ...said] }])
    await scene.untilCalls(5)
    const [before, , , , again] = scene.calls
    expect(again).toMatchObject({ value: 'a', attempt: 1, offset: '0' })
    expect(again?.from.offset).toBe('2')
    expect(again?.payload.message.timestamp).toBe(before?.payload.message.timestamp)
    expect([before, again].map((call) => call?.payload.message.headers.empty)).toEqual([null, null])
    await scene.untilDone()
    expect(await scene.dead()).toHaveLength(1)
    await second.stop()
    await third.stop()
  })
}
