/**
 * R79: no limit to dead letters.
 * Given a release with a bug that fails every record for good, and `deadLetterLimit`.
 * When 5,000 records come.
 * Then it stops after the limit, says so in its log, its events and its health, and leaves the rest uncommitted; a release
 * without the bug handles them.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { numbered } from './numbered'

const BURST = 50

export function r79(given: Given): void {
  it('R79: 5,000 fatal records stop it at the limit, and the next release handles the rest', async () => {
    const scene = await given.scene()
    const bad = await scene.join(
      () => {
        throw new TypeError('undefined is not a function')
      },
      { deadLetterLimit: { share: 0.2, burst: BURST } },
    )
    await scene.produce(numbered(5_000))
    await given.stage().until(() => bad.hooks.counts.halted === 1, 'it stops and says so')
    await scene.untilDead(BURST)
    expect(bad.consumer.health()).toMatchObject({
      status: 'degraded',
      problems: [expect.stringContaining('deadLetterLimit')],
    })
    await bad.stop()
    expect(await scene.dead()).toHaveLength(BURST)
    await scene.join()
    await scene.untilDone()
    expect(await scene.dead()).toHaveLength(BURST)
    const good = scene.calls.filter(({ member }) => member === 1)
    expect(good.map(({ value }) => Number(value))).toEqual(Array.from({ length: 5_000 - BURST }, (_, n) => n + BURST))
  })
}
