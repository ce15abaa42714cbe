/**
 * R55: a codec that nobody registered.
 * Given a consumer of two topics, one of which holds a batch in a codec that kafkajs does not bring (LZ4), with good records
 * behind it, and a retry topic that works.
 * When the batch is fetched; and when the codec is registered at last, with the process running on.
 * Then nothing crashes; it is told again and again, by event and health, with topic, partition, offset, codec and what to
 * do; the other topic and the retry topic are handled meanwhile; once the codec is there,
 * everything is handled, and a copy has the bytes of its source.
 */
import { expect, it } from 'vitest'
import { NonRetryableError } from '../../src'
import { codecSwitch } from '../contract/codecs'
import type { Given } from '../contract/promises'
import { readLz4 } from './lz4'

const LARGE = 'lz4 '.repeat(2_000)
const SAYS = /LZ4 compression not implemented: register it in kafkajs's CompressionCodecs/

export function r55(given: Given): void {
  it('R55 P12: told with its place and codec, nothing else waits, and nothing is lost', async () => {
    const stage = given.stage()
    const codec = codecSwitch('LZ4')
    codec.takeAway()
    const packed = stage.unique('packed')
    // The broker packs what stands on the topic, whoever wrote it and however.
    await stage.createTopics({ [packed]: 1 }, { 'compression.type': 'lz4' })
    const scene = await given.scene({ schedule: ['200ms'] })
    const { consumer, hooks } = scene.member(
      ({ value, attempt }) => {
        if (value === LARGE) throw new NonRetryableError('a bad order')
        if (value === 'twice' && attempt === 1) throw new Error('not yet')
      },
      { topic: [packed, scene.topic], topicSetup: 'create' },
    )
    await stage.during(consumer.start())
    await stage.produce(packed, 0, [{ value: LARGE }])
    await stage.produce(packed, 0, [{ value: 'behind' }])
    await scene.produce(['beside', 'twice'])

    await stage.until(() => hooks.counts.unreadable >= 2, 'it is told again')
    await scene.untilCalls(1, ({ value, attempt }) => value === 'twice' && attempt === 2)
    const { status, groups, problems } = consumer.health()
    expect(status).toBe('degraded')
    expect(groups.map(({ state }) => state)).toEqual(['ok', 'ok'])
    expect(problems).toEqual([expect.stringMatching(SAYS)])
    expect(problems[0]).toContain(`${packed}/0 waits at 0`)
    const [first, second] = hooks.events('unreadable')
    for (const told of [first, second])
      expect(told).toMatchObject({ topic: packed, partition: 0, offset: '0', error: expect.stringMatching(SAYS) })
    expect(second!.againInMs).toBe(2 * first!.againInMs)
    expect([...new Set(scene.values())]).toEqual(['beside', 'twice'])
    expect((await stage.committed(scene.group, packed)).get(0)).toBeLessThanOrEqual(0n)

    codec.give(() => ({ decompress: async (bytes: Buffer) => readLz4(bytes) }))
    await stage.until(async () => (await stage.committed(scene.group, packed)).get(0) === 2n, 'all of it is committed')
    await scene.untilDone()
    expect(scene.values().slice(-2)).toEqual([LARGE, 'behind'])
    expect((await stage.records(`${packed}.dlq`)).map(({ value }) => String(value))).toEqual([LARGE])
    expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })
    expect([hooks.counts.readable, hooks.counts.crashed]).toEqual([1, 0])
  })
}
