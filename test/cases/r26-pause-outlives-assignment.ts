/**
 * R26: a pause that outlives the assignment.
 * Given a lane that is full, so that kafkajs has its partition paused; or one whose record waits for its due time.
 * When the partition goes to another member, its timer fires or its lane would resume meanwhile, and it comes back.
 * Then the former owner handles nothing of it meanwhile, and the partition flows for every owner it has, also for one
 * that had it paused before.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import type { Call } from '../contract/scene'
import { putOnTier } from './on-tier'

const values = (count: number, prefix: string): string[] => Array.from({ length: count }, (_, n) => `${prefix}${n}`)

export function r26(given: Given): void {
  it('R26 P7: a lane that was full, and so paused, flows again wherever it goes', async () => {
    const scene = await given.scene({ partitions: 2 })
    const gate = scene.gate()
    const act = ({ member, partition }: Call): unknown => (member === 0 && partition === 0 ? gate.wait() : undefined)
    const options = { maxBufferedRecords: 10 }
    const first = await scene.join(act, options)
    await scene.produce(values(30, 'r'), 0)
    await given.stage().until(() => first.hooks.events('lane').some(({ full }) => full), 'the lane is full')
    const second = await scene.join(act, options)
    await scene.untilShared([first, second], 2)
    gate.open()
    await second.stop()
    const third = await scene.join(act, options)
    await scene.untilShared([first, third], 2)
    await scene.produce(values(30, 's'), 0)
    await scene.produce(values(30, 't'), 1)
    await scene.untilDone()
    expect(new Set(scene.values()).size).toBe(90)
  })

  it('R26 P7: both partitions full, away, and back to the member that had them paused', async () => {
    const scene = await given.scene({ partitions: 2 })
    const gates = [scene.gate(), scene.gate()]
    const act = ({ member }: Call): unknown => gates[member]?.wait()
    const options = { maxBufferedRecords: 10 }
    const first = await scene.join(act, options)
    for (const partition of [0, 1]) await scene.produce(values(30, `${partition}:`), partition)
    const isFull = (partition: number): boolean =>
      first.hooks.events('lane').some((event) => event.partition === partition && event.full)
    await given.stage().until(() => isFull(0) && isFull(1), 'both lanes are full')
    const second = await scene.join(act, options)
    await scene.untilShared([first, second], 2)
    gates[1]?.open()
    await scene.untilCalls(30, ({ member }) => member === 1)
    await second.stop()
    gates[0]?.open()
    await scene.untilDone()
    expect(new Set(scene.values()).size).toBe(60)
    const states = (): string[] => first.consumer.health().groups[0]!.partitions.map(({ state }) => state)
    await given.stage().until(
      () => states().join() === 'ok,ok',
      () => `no partition is paused or full: ${states().join()}`,
    )
    for (const partition of [0, 1]) await scene.produce(['after'], partition)
    await scene.untilCalls(2, ({ value }) => value === 'after')
  })

  it('R26 P7: a timer that fires while its partition is away handles nothing, and the partition flows when it is back', async () => {
    const scene = await given.scene({ partitions: 2, schedule: ['1s'] })
    const first = await scene.join()
    const waiting = (): number =>
      first.consumer.health().groups[1]?.partitions.reduce((sum, { held }) => sum + held, 0) ?? 0
    for (const partition of [0, 1]) await putOnTier(scene, '1s', [{ value: `${partition}`, dueIn: 1_000 }], partition)
    await given.stage().until(() => waiting() === 2, 'both wait in memory')
    const second = await scene.join()
    await scene.untilCalls(2)
    const owners = scene.calls.map(({ member, value }) => `${value} by ${member}`).sort()
    expect(new Set(scene.calls.map(({ member }) => member)), owners.join()).toEqual(new Set([0, 1]))
    await second.stop()
    for (const partition of [0, 1]) await putOnTier(scene, '1s', [{ value: 'after', dueIn: 0 }], partition)
    await scene.untilDone()
    expect(scene.calls.filter(({ member, value }) => member === 0 && value === 'after')).toHaveLength(2)
    expect(scene.calls).toHaveLength(4)
    scene.expectNeverEarly()
  })
}
