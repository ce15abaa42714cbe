/**
 * R22: one key, one place: the second replaces the first.
 * Given five records of one key on one tier, and retry topics that the broker would compact by key.
 * When all five fail until the end; when a consumer is started on such topics.
 * Then five copies and five dead letters stand, told apart by topic, partition, offset and group; and a retry or dead
 * letter topic with `cleanup.policy=compact` is refused at the start, with its name.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { header, Scene } from '../contract/scene'
import type { StoredRecord } from '../contract/stage'

const identity = (record: StoredRecord): string =>
  ['topic', 'partition', 'offset']
    .map((part) => header(record, `x-original-${part}`))
    .concat(header(record, 'x-consumer-group'))
    .join(' ')

export function r22(given: Given): void {
  it('R22 P1: five failures of one key are five copies, and five dead letters', async () => {
    const scene = await given.scene()
    await scene.join(() => {
      throw new RetryableError('the shop is closed')
    })
    await scene.produce(Array.from({ length: 5 }, (_, n) => ({ key: 'order 1', value: `failure ${n}` })))
    await scene.untilDone()
    const expected = [0, 1, 2, 3, 4].map((n) => `${scene.topic} 0 ${n} ${scene.group}`)
    for (const topic of [scene.retry('200ms'), scene.dlq]) {
      const copies = await given.stage().records(topic)
      expect(copies.map(identity)).toEqual(expected)
      expect(copies.map(({ value }) => String(value))).toEqual([0, 1, 2, 3, 4].map((n) => `failure ${n}`))
    }
  })

  it.each(['retry topic', 'dead letter topic'])('R22 P10: a compacted %s is refused at the start', async (which) => {
    const scene = Scene.over(given.stage(), {})
    const [compacted, plain] =
      which === 'retry topic' ? [scene.retry('200ms'), scene.dlq] : [scene.dlq, scene.retry('200ms')]
    await given.stage().createTopics({ [scene.topic]: 1, [plain]: 1 })
    await given.stage().createTopics({ [compacted]: 1 }, { 'cleanup.policy': 'compact' })
    const { consumer } = scene.member()
    const refusal: unknown = await given.stage().during(consumer.start().catch((error: unknown) => error))
    expect(refusal).toMatchObject({ code: 'RETRYLINE_TOPICS' })
    expect(String(refusal)).toMatch(new RegExp(`${compacted}.*cleanup\\.policy is compact`))
    await scene.close()
  })
}
