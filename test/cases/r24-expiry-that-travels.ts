/**
 * R24: an expiry that travels with the dead letter.
 * Given a record that is fifteen days old, and a dead letter topic that keeps records for ten minutes.
 * When it fails and is copied: a copy with the old timestamp would be deleted at the broker's next look.
 * Then the copies bear the time of their copying, the old timestamp in a header, and the dead letter is still there when
 * a record with the old timestamp, on a topic with the same retention, has been deleted.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { header, Scene } from '../contract/scene'

const FIFTEEN_DAYS = 15 * 24 * 3_600_000
const FAILS = (): never => {
  throw new RetryableError('the shop is closed')
}

export function r24(given: Given): void {
  it('R24 P3: a copy has a new timestamp, and the old one in a header', async () => {
    const scene = await given.scene()
    const before = given.stage().now()
    await scene.join(FAILS)
    await scene.produce([{ value: 'old', timestamp: before - FIFTEEN_DAYS }])
    await scene.untilDone()
    for (const topic of [scene.retry('200ms'), scene.dlq]) {
      const [copy] = await given.stage().records(topic)
      expect(copy?.timestamp).toBeGreaterThanOrEqual(before)
      expect(header(copy!, 'x-original-timestamp')).toBe(String(before - FIFTEEN_DAYS))
    }
  })
}

/** Only where a broker deletes by time. */
export function r24Retention(given: Given): void {
  it('R24 P3: the dead letter outlives a retention that takes records of the old time', async () => {
    const stage = given.stage()
    const scene = Scene.over(stage, { schedule: [] })
    const beside = stage.unique('beside')
    await stage.createTopics({ [scene.topic]: 1 })
    await stage.createTopics({ [scene.dlq]: 1, [beside]: 1 }, { 'retention.ms': '600000' })
    await scene.join(FAILS)
    const old = { value: 'old', timestamp: stage.now() - FIFTEEN_DAYS }
    await scene.produce([old])
    await scene.untilDead(1)
    await stage.produce(beside, 0, [old])
    const isDeleted = async (): Promise<boolean> => {
      const end = (await stage.ends(beside)).get(0)
      return end !== undefined && end.low === end.high && end.high > 0n
    }
    await stage.until(isDeleted, 'the record beside it is deleted')
    expect((await scene.dead()).map(({ value }) => String(value))).toEqual(['old'])
    await scene.close()
  })
}
