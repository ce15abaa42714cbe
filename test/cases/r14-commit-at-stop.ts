/**
 * R14: no commit at the stop.
 * Given a consumer that commits once a minute.
 * When it has handled a few records and is stopped long before the minute is over.
 * Then their offset is on the broker before `stop()` resolves, and the next consumer handles none of them again.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { numbered } from './numbered'

export function r14(given: Given): void {
  it('R14 P9: what is settled is on the broker before stop() resolves, and nothing more', async () => {
    const scene = await given.scene()
    const gate = scene.gate()
    const options = { commitInterval: '60s' }
    const first = await scene.join(({ value }) => (value === '5' ? gate.wait() : undefined), options)
    await given.stage().until(() => first.faults.commits.length > 0, 'the first commit, so that the next is far away')
    await scene.produce(numbered(20))
    await scene.untilCalls(6)
    expect((await scene.committed()).get(0)).toBe(0n)
    const stopping = first.consumer.stop()
    gate.open()
    expect(await given.stage().during(stopping)).toEqual({ abandoned: [], finished: true })
    expect((await scene.committed()).get(0)).toBe(6n)
    expect(scene.calls).toHaveLength(6)
    const second = await scene.join()
    await scene.untilDone()
    await second.stop()
    expect(scene.values()).toEqual(numbered(20).map(({ value }) => value))
    expect(await given.stage().members(scene.group)).toEqual([])
  })
}
