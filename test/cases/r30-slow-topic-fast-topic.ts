/**
 * R30: a slow topic starves a fast one.
 * Given one consumer of two topics, with as many records waiting on the slow one as it has places, and more.
 * When every handler of the slow topic takes its time, or does not come back, and records come on the fast one.
 * Then the fast ones are handled meanwhile, each within a moment.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'

export function r30(given: Given): void {
  it('R30 P5: a slow topic that stands still and a fast one in one consumer', async () => {
    const slowOne = await given.scene()
    const fastOne = await given.scene({ group: slowOne.group })
    const slow = slowOne.gate()
    await slowOne.join(({ topic }) => topic === slowOne.topic && slow.wait(), {
      topic: [slowOne.topic, fastOne.topic],
      concurrency: 2,
    })
    await slowOne.produce(['s0', 's1', 's2'])
    await slowOne.untilCalls(1)
    await fastOne.produce(Array.from({ length: 20 }, (_, n) => `f${n}`))
    await slowOne.untilCalls(20, ({ topic }) => topic === fastOne.topic)
    slow.open()
    await slowOne.untilDone()
  })

  it('R30 P5: a slow topic with a backlog leaves the fast one as quick as it is alone', async ({ annotate }) => {
    const stage = given.stage()
    const slowOne = await given.scene({ partitions: 3 })
    const fastOne = await given.scene({ group: slowOne.group })
    await slowOne.join(({ topic }) => (topic === slowOne.topic ? stage.takes(50) : undefined), {
      topic: [slowOne.topic, fastOne.topic],
    })
    for (const partition of [0, 1, 2])
      await slowOne.produce(
        Array.from({ length: 300 }, () => 's'),
        partition,
      )
    await slowOne.untilCalls(3)
    const delays: number[] = []
    for (let n = 0; n < 20; n++) {
      const producedAt = stage.now()
      await fastOne.produce([`f${n}`])
      await slowOne.untilCalls(n + 1, ({ topic }) => topic === fastOne.topic)
      delays.push(slowOne.calls.filter(({ topic }) => topic === fastOne.topic).at(-1)!.startedAt - producedAt)
    }
    const isStillBusy = slowOne.calls.filter(({ topic }) => topic === slowOne.topic).length < 900
    expect(isStillBusy, 'the slow topic is busy all the while').toBe(true)
    const p95 = delays.sort((a, b) => a - b)[18]!
    if (stage.kind === 'real') await annotate(`p95 of the fast topic: ${p95} ms`)
    expect(p95).toBeLessThanOrEqual(500)
  })
}
