/**
 * R36: a resume that takes seconds.
 * Given a consumer that is paused for so long that its memory is full and kafkajs's fetches of the partition are paused.
 * When it is resumed.
 * Then nothing started before; the first record starts within 300 ms (plain kafkajs: 4 s), and so does the first one
 * that had to be fetched anew.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'

const ROUNDS = 5

export function r36(given: Given): void {
  it('R36 P11: while paused nothing starts, however much comes; after the resume it starts soon', async ({
    annotate,
  }) => {
    const scene = await given.scene()
    const options = { maxBufferedRecords: 10 }
    const { consumer, hooks } = await scene.join(undefined, options)
    const tookFirst: number[] = []
    const tookAll: number[] = []
    for (let round = 1; round <= ROUNDS; round++) {
      consumer.pause()
      const calls = scene.calls.length
      // One batch each, so that not all of them come with one fetch.
      for (let n = 0; n < 4; n++) await scene.produce(Array.from({ length: 50 }, () => 'x'.repeat(10_000)))
      await given
        .stage()
        .until(() => hooks.events('lane').filter(({ full }) => full).length >= round, 'the lane is full')
      expect(scene.calls).toHaveLength(calls)
      const resumedAt = given.stage().now()
      consumer.resume()
      await scene.untilCalls(200 * round)
      tookFirst.push(scene.calls[calls]!.startedAt - resumedAt)
      tookAll.push(scene.calls.at(-1)!.startedAt - resumedAt)
    }
    for (const took of [tookFirst, tookAll]) took.sort((a, b) => a - b)
    const [first, all] = [tookFirst[2]!, tookAll[2]!]
    if (given.stage().kind === 'real') await annotate(`median: first ${first} ms, all 200 ${all} ms after the resume`)
    expect(first).toBeLessThanOrEqual(300)
    // The rest is fetched in pieces, each after a resume of kafkajs's own.
    expect(all).toBeLessThanOrEqual(3_000)
    await scene.untilDone()
  })
}
