/**
 * R55: a codec that nobody registered.
 * Given a consumer of two topics, one of which holds a batch in a codec that kafkajs does not bring (LZ4), with good records
 * behind it, and a retry topic that works.
 * When the batch is fetched, again and again; and when the codec is registered at last, with the process running on.
 * Then each crash is told by event and health, with the codec, the topics and what to do; the health is not well between
 * two crashes either, the restarts come later each time, and the retry topic's group goes on; once the codec is there,
 * everything is handled, and a copy has the bytes of its source.
 */
import { CompressionCodecs, CompressionTypes } from 'kafkajs'
import { expect, it, onTestFinished } from 'vitest'
import { NonRetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { readLz4 } from './lz4'

const LARGE = 'lz4 '.repeat(2_000)

function withoutLz4(): { register(): void } {
  const codecs = CompressionCodecs as Record<number, unknown>
  const before = codecs[CompressionTypes.LZ4]
  onTestFinished(() => {
    codecs[CompressionTypes.LZ4] = before
  })
  return {
    register() {
      codecs[CompressionTypes.LZ4] = () => ({ decompress: async (bytes: Buffer) => readLz4(bytes) })
    },
  }
}

export function r55(given: Given): void {
  it('R55 P12: told with codec and topic, unwell until it is registered, and nothing lost', async () => {
    const stage = given.stage()
    const codec = withoutLz4()
    const packed = stage.unique('packed')
    // The broker packs what stands on the topic, whoever wrote it and however.
    await stage.createTopics({ [packed]: 1 }, { 'compression.type': 'lz4' })
    const scene = await given.scene({ schedule: ['200ms'] })
    const { consumer, hooks } = scene.member(
      ({ value }) => {
        if (value === LARGE) throw new NonRetryableError('a bad order')
      },
      { topic: [packed, scene.topic], topicSetup: 'create' },
    )
    const crashes: { at: number; error: string; restarting: boolean }[] = []
    const joins: { at: number; status: string; problems: string }[] = []
    consumer.on('crashed', ({ error, restarting }) => crashes.push({ at: stage.now(), error, restarting }))
    consumer.on('rebalanced', () => {
      const { status, problems } = consumer.health()
      if (crashes.length > 0) joins.push({ at: stage.now(), status, problems: problems.join() })
    })
    await stage.during(consumer.start())
    await stage.produce(packed, 0, [{ value: LARGE }])
    await stage.produce(packed, 0, [{ value: 'behind' }])
    await scene.produce(['beside'])

    await stage.until(() => crashes.length >= 2, 'two crashes')
    const { status, groups, problems } = consumer.health()
    expect(status).toBe('degraded')
    expect(groups.map(({ state }) => state)).toEqual(['crashed', 'ok'])
    const both = `('${packed}' or '${scene.topic}'|'${scene.topic}' or '${packed}')`
    const says = new RegExp(`LZ4.*register it in kafkajs's CompressionCodecs .*${both}`)
    expect(problems).toEqual([expect.stringMatching(says)])
    for (const { error, restarting } of crashes)
      expect([restarting, error]).toEqual([true, expect.stringMatching(says)])

    codec.register()
    await stage.until(async () => (await stage.committed(scene.group, packed)).get(0) === 2n, 'all of it is committed')
    await scene.untilDone()
    expect(scene.values().filter((value) => value !== 'beside')).toEqual([LARGE, 'behind'])
    expect(scene.values()).toContain('beside')
    expect((await stage.records(`${packed}.dlq`)).map(({ value }) => String(value))).toEqual([LARGE])
    expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })
    // It had joined again after each crash, and was not taken for well.
    expect(joins.length).toBeGreaterThanOrEqual(crashes.length)
    for (const join of joins) expect([join.status, join.problems]).toEqual(['degraded', expect.stringMatching(says)])
    // Half a second, then a second: the joins themselves take far less.
    const waits = crashes.map(({ at }, i) => joins[i]!.at - at)
    expect(waits[0]).toBeGreaterThanOrEqual(490)
    expect(waits[1]).toBeGreaterThanOrEqual(990)
    expect(hooks.counts.crashed).toBe(crashes.length)
  })
}
