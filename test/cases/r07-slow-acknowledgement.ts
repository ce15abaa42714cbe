/**
 * R07: too short a wait for a copy.
 * Given a failed record whose copy stands, but is acknowledged late, or never.
 * When the engine waits with its own time-out (not shorter than kafkajs needs for its tries), or with a short one.
 * Then nothing is committed before an acknowledgement; a slow one makes no second copy, and one that came too late or
 * was lost makes a copy that stands twice, never one that is lost.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { header } from '../contract/scene'

const failsOnce = ({ value }: { value: string | null }): void => {
  if (value === 'bad') throw new RetryableError('the shop is closed')
}

export function r07(given: Given): void {
  it('R07 P1: an acknowledgement that takes its time is waited for', async () => {
    const isFake = given.stage().kind === 'fake'
    // A real broker is given only the first of these.
    const waits = isFake ? [1_000, 20_000, 40_000] : [1_000]
    for (const ms of waits) {
      const scene = await given.scene({ partitions: 2 })
      const member = await scene.join(failsOnce)
      let acknowledgedAt = 0
      member.faults.bend('producer.sendBatch', async (result) => {
        const answer = await result()
        if (acknowledgedAt > 0) return answer
        await given.stage().takes(ms)
        acknowledgedAt = given.stage().now()
        return answer
      })
      await scene.produce(['bad', 'good'])
      await given
        .stage()
        .until(async () => (await given.stage().records(scene.retry('200ms'))).length > 0, 'the copy stands')
      await scene.witness(1)
      // Where a starved machine made the witness take longer than the acknowledgement, there is nothing to see.
      if (isFake || acknowledgedAt === 0) expect((await scene.committed()).get(0), `${ms} ms`).toBe(0n)
      await scene.untilDone()
      const copies = await given.stage().records(scene.retry('200ms'))
      expect([ms, copies.length, member.hooks.counts.publishFailed]).toEqual([ms, 1, 0])
      expect(await scene.dead()).toHaveLength(1)
    }
  })

  it.each(['answer-lost', 'late'] as const)(
    'R07 P1: a copy whose answer is "%s" stands twice at worst',
    async (kind) => {
      const scene = await given.scene()
      const member = await scene.join(failsOnce, { publishTimeout: '1s' })
      const fault = member.faults.publish(kind, { times: 1 })
      await scene.produce(['bad', 'good'])
      await scene.untilDone()
      expect(fault.hits).toBe(1)
      const retried = await given.stage().records(scene.retry('200ms'))
      expect(retried.map((one) => header(one, 'x-original-offset'))).toEqual(['0', '0'])
      expect((await scene.dead()).length).toBeGreaterThanOrEqual(1)
    },
  )
}
