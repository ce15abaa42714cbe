/**
 * R13: a stop in the middle of a batch.
 * Given a batch of a hundred records, of which ten are handled and the eleventh is in its handler.
 * When the consumer is stopped, and another one started.
 * Then what was handled is committed and no more; the other goes on from there, and every record was handled once.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { numbered } from './numbered'

export function r13(given: Given): void {
  it('R13 P7: a stop in the middle commits what was done, and the next one goes on from there', async () => {
    const scene = await given.scene()
    const gate = scene.gate()
    const first = await scene.join(({ member, offset }) => member === 0 && offset === '10' && gate.wait())
    await scene.produce(numbered(100))
    await scene.untilCalls(11)
    const stopping = first.consumer.stop()
    gate.open()
    await given.stage().during(stopping)
    expect((await scene.committed()).get(0)).toBe(11n)
    await scene.join()
    await scene.untilDone()
    expect(scene.values()).toEqual(numbered(100).map(({ value }) => value))
  })
}
