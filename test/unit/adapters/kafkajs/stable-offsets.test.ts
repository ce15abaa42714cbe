/** OffsetFetch, version 7: the request byte by byte, the answer from bytes that are put together here by themselves. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decode, encode, readStable, type Answer } from '../../../../src/adapters/kafkajs/stable-offsets'
import type { TopicPartition } from '../../../../src/ports'
import { createTestClock } from '../../../helpers/test-clock'

type Offset = Answer['offsets'][number]

describe('the request', () => {
  it('is what the protocol says', () => {
    const partitions = [
      { topic: 'a', partition: 0 },
      { topic: 'bc', partition: 1 },
      { topic: 'a', partition: 258 },
    ]
    const bytes = [
      [0], // no tagged fields of the header
      [2, 0x67], // 'g'
      [3], // two topics
      [2, 0x61, 3, 0, 0, 0, 0, 0, 0, 1, 2, 0], // 'a', two partitions
      [3, 0x62, 0x63, 2, 0, 0, 0, 1, 0], // 'bc', one
      [1], // require_stable
      [0],
    ]
    expect([...encode('g', partitions)]).toEqual(bytes.flat())
  })

  it('says lengths of 127 and more in several bytes, and counts bytes, not characters', () => {
    const group = 'é'.repeat(100)
    const bytes = encode(group, [])
    expect([...bytes.subarray(0, 3)]).toEqual([0, 0xc9, 0x01]) // 200 + 1
    expect(bytes.subarray(3, 203).toString()).toBe(group)
    expect([...bytes.subarray(203)]).toEqual([1, 1, 0])
  })
})

describe('the answer', () => {
  const offset = fc.record<Offset>({
    topic: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 }),
    partition: fc.nat(2 ** 31 - 1),
    offset: fc.bigInt(-1n, 2n ** 63n - 1n),
    metadata: fc.option(fc.string({ unit: 'binary', maxLength: 4_000 })),
    errorCode: fc.integer({ min: -1, max: 120 }),
  })
  const groups = fc.array(fc.array(offset, { minLength: 1, maxLength: 5 }), { maxLength: 5 })

  it('is read as it was written: topics, offsets beyond 2^53, metadata of any length or none, error codes, unknown tags', () => {
    fc.assert(
      fc.property(groups, fc.integer({ min: -1, max: 120 }), fc.uint8Array({ maxLength: 300 }), (topics, code, tag) => {
        const told = topics.map((list) => list.map((one) => ({ ...one, topic: list[0]!.topic })))
        expect(decode(write(told, code, tag))).toEqual({ offsets: told.flat(), errorCode: code })
      }),
    )
  })

  it('that is cut is an error, and no offset', () => {
    const whole = write([[{ topic: 'a', partition: 0, offset: 1n, metadata: 'm', errorCode: 0 }]], 0, new Uint8Array())
    for (let length = 0; length < whole.length - 1; length++)
      expect(() => decode(whole.subarray(0, length)), `${length} bytes`).toThrow()
  })
})

describe('reading', () => {
  const wanted: TopicPartition[] = [{ topic: 'a', partition: 0 }]
  const answerOf = (errorCode: number, code = 0): Buffer =>
    write([[{ topic: 'a', partition: 0, offset: 5n, metadata: 'm', errorCode }]], code, new Uint8Array())

  function clusterOf(answers: Buffer[], maxVersion = 9) {
    let asked = 0
    return {
      asked: () => asked,
      findGroupCoordinator: async () => ({
        versions: { 9: { maxVersion } },
        connectionPool: {
          async send({
            response,
          }: {
            response: { decode(bytes: Buffer): Promise<unknown>; parse(it: unknown): Promise<unknown> }
          }) {
            const answer = answers[Math.min(asked++, answers.length - 1)]!
            return response.parse(await response.decode(answer))
          },
        },
      }),
    }
  }

  it('asks again while a transaction of the partition is not settled', async () => {
    const clock = createTestClock()
    const cluster = clusterOf([answerOf(88), answerOf(88), answerOf(0)])
    const reading = readStable(cluster, 'g', wanted, clock)
    await clock.advance(19)
    expect(cluster.asked()).toBe(1)
    await clock.advance(100)
    expect(await reading).toMatchObject([{ topic: 'a', partition: 0, offset: 5n, metadata: 'm' }])
    expect(cluster.asked()).toBe(3)
  })

  it.each([14, 15, 16])('asks again while the coordinator is not there: error %i', async (code) => {
    const clock = createTestClock()
    const reading = readStable(clusterOf([answerOf(0, code), answerOf(0)]), 'g', wanted, clock)
    await clock.advance(100)
    expect(await reading).toMatchObject([{ offset: 5n }])
  })

  it('gives up where that lasts', async () => {
    const clock = createTestClock()
    const reading = readStable(clusterOf([answerOf(88)]), 'g', wanted, clock)
    const refused = expect(reading).rejects.toThrow("the broker does not tell the offsets of 'g' (88)")
    await clock.advance(5_100)
    await refused
  })

  it.each([
    ['of a partition', answerOf(29), 29],
    ['of the group', answerOf(0, 30), 30],
  ])('any other error, %s, is one at once', async (_, answer, code) => {
    const reading = readStable(clusterOf([answer]), 'g', wanted, createTestClock())
    await expect(reading).rejects.toMatchObject({
      code: 'RETRYLINE_CONNECT',
      message: expect.stringContaining(`(${code})`),
    })
  })

  it.each([
    ['there is no cluster', undefined],
    ['the cluster cannot look for a coordinator', {}],
    ['the broker is too old', clusterOf([answerOf(0)], 6)],
  ])('is for somebody else where %s', async (_, cluster) => {
    expect(await readStable(cluster, 'g', wanted, createTestClock())).toBeUndefined()
  })
})

/** Behind the correlation id; `tag` is a tagged field that nobody knows. */
function write(topics: readonly (readonly Offset[])[], errorCode: number, tag: Uint8Array): Buffer {
  const tags = tag.length === 0 ? [0] : [1, ...varint(7), ...varint(tag.length), ...tag]
  const text = (value: string | null): number[] => {
    if (value === null) return [0]
    const bytes = Buffer.from(value)
    return [...varint(bytes.length + 1), ...bytes]
  }
  const int = (bits: 16 | 32 | 64, value: bigint): number[] => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64BE(value)
    return [...bytes.subarray(8 - bits / 8)]
  }
  const partition = (one: Offset): number[] => [
    ...int(32, BigInt(one.partition)),
    ...int(64, one.offset),
    ...int(32, 3n),
    ...text(one.metadata),
    ...int(16, BigInt(one.errorCode)),
    ...tags,
  ]
  const topic = (list: readonly Offset[]): number[] => [
    ...text(list[0]!.topic),
    ...varint(list.length + 1),
    ...list.flatMap(partition),
    ...tags,
  ]
  const all = [...varint(topics.length + 1), ...topics.flatMap(topic), ...int(16, BigInt(errorCode)), ...tags]
  return Buffer.from([...tags, 0, 0, 0, 0, ...all])
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}
