import { describe, expect, test } from 'vitest'
import type { AssignerLike, FetchAnswer, FetchRequest } from '../../../../src/adapters/kafkajs/kafkajs-like'
import { readingAround } from '../../../../src/adapters/kafkajs/read-around'

const UNDECODABLE = Object.assign(new Error('ZSTD compression not implemented'), { name: 'KafkaJSNotImplemented' })
const MAX = 1_024

/** Partitions of one topic: sizes of batches in bytes, each readable (its offset) or not (an error). */
type Log = (number | Error)[]

/** One broker whose batches have one record and 100 bytes each; what it is asked is noted. */
function setUp(logs: Log[], fail?: (request: FetchRequest) => unknown) {
  const asked: string[] = []
  const told: string[] = []
  const broker = {
    async fetch(request: FetchRequest): Promise<FetchAnswer> {
      const all = request.topics.flatMap(({ partitions }) => partitions)
      asked.push(
        `${all.map(({ partition, fetchOffset, maxBytes }) => `${partition}@${fetchOffset}<${maxBytes}`).join(' ')} wait ${request.maxWaitTime}`,
      )
      const failure = fail?.(request)
      if (failure !== undefined) throw failure
      return {
        responses: all.map(({ partition, fetchOffset, maxBytes }) => {
          const from = Number(fetchOffset)
          const batches = logs[partition]!.slice(from, from + Math.max(1, Math.floor(maxBytes / 100)))
          for (const batch of batches) if (batch instanceof Error) throw batch
          return [partition, ...batches]
        }),
      }
    },
  }
  const cluster = {
    findTopicPartitionMetadata: () => [],
    findBroker: async () => broker,
  }
  const assigner = {} as AssignerLike
  const made = readingAround([() => assigner, () => assigner], ({ topic, partition }, offset, error) =>
    told.push(`${topic}/${partition}@${offset} ${String((error as Error)?.message ?? error)}`),
  )
  for (const create of made) expect(create({ cluster: cluster as never })).toBe(assigner)
  return {
    asked,
    told,
    async fetch(positions: Record<number, number>): Promise<unknown[]> {
      const found = await cluster.findBroker()
      const partitions = Object.entries(positions).map(([partition, offset]) => ({
        partition: Number(partition),
        fetchOffset: String(offset),
        maxBytes: MAX,
      }))
      const answer = await found.fetch({ maxWaitTime: 200, maxBytes: 4 * MAX, topics: [{ topic: 't', partitions }] })
      return answer.responses
    },
  }
}

describe('a fetch that reads around', () => {
  test('what can be decoded is one request', async () => {
    const { fetch, asked, told } = setUp([[0, 1], [0]])
    expect(await fetch({ 0: 0, 1: 0 })).toEqual([
      [0, 0, 1],
      [1, 0],
    ])
    expect(asked).toHaveLength(1)
    expect(told).toEqual([])
  })

  test('the batch that is next is told with its place, and the other partitions are answered', async () => {
    const { fetch, told, asked } = setUp([[0], [0, UNDECODABLE, 2], [0]])
    expect(await fetch({ 0: 0, 1: 1, 2: 0 })).toEqual([
      [0, 0],
      [2, 0],
    ])
    expect(told).toEqual(['t/1@1 ZSTD compression not implemented'])
    expect(asked.at(-1)).toBe('0@0<1024 2@0<1024 wait 200')
  })

  test('what stands in front of it comes first, without a gap and without a wait', async () => {
    const { fetch, told, asked } = setUp([[0, 1, 2, UNDECODABLE, 4], [0]])
    expect(await fetch({ 0: 0, 1: 0 })).toEqual([
      [0, 0, 1],
      [1, 0],
    ])
    expect(asked.at(-1)).toBe('1@0<1024 wait 0')
    expect(told).toEqual([])
    expect(await fetch({ 0: 2, 1: 0 })).toContainEqual([0, 2])
    expect(told).toEqual([])
    await fetch({ 0: 3, 1: 0 })
    expect(told).toEqual(['t/0@3 ZSTD compression not implemented'])
  })

  test('the partition that was in the way before is tried alone', async () => {
    const { fetch, asked } = setUp([[0], [0], [0], [UNDECODABLE], [0]])
    const all = { 0: 0, 1: 0, 2: 0, 3: 0, 4: 0 }
    await fetch(all)
    // All, each, what stands in front, all others.
    expect(asked).toHaveLength(8)
    await fetch(all)
    expect(asked.slice(9)).toEqual(['3@0<1024 wait 0', '3@0<1 wait 0', '0@0<1024 1@0<1024 2@0<1024 4@0<1024 wait 200'])
  })

  test('several at once, and nothing else to be read', async () => {
    const { fetch, told } = setUp([[UNDECODABLE], [new RangeError('out of bounds')]])
    expect(await fetch({ 0: 0, 1: 0 })).toEqual([])
    expect(told).toEqual(['t/0@0 ZSTD compression not implemented', 't/1@0 out of bounds'])
  })

  test.each(['a text', undefined, null, { name: 7 }])('a codec may throw anything: %j', async (thrown) => {
    let times = 0
    const { fetch, told } = setUp([[0]], () => (times++ < 3 ? { thrown } : undefined))
    await fetch({ 0: 0 })
    expect(told).toHaveLength(1)
  })

  test.each([
    'KafkaJSConnectionClosedError',
    'KafkaJSRequestTimeoutError',
    'KafkaJSOffsetOutOfRange',
    'KafkaJSProtocolError',
  ])('what is no matter of bytes goes on to kafkajs: %s, at once or in between', async (name) => {
    const error = Object.assign(new Error('no'), { name })
    const at = (nth: number) => {
      let times = 0
      return setUp([[UNDECODABLE], [0]], () => (times++ === nth ? error : undefined))
    }
    for (const nth of [0, 1, 2, 3, 4]) {
      const { fetch, told } = at(nth)
      await expect(fetch({ 0: 0, 1: 0 })).rejects.toBe(error)
      // Once it is known, it is known, whatever becomes of the rest.
      expect(told).toHaveLength(nth === 4 ? 1 : 0)
    }
  })

  test('what cannot be found one by one fails as it would without us', async () => {
    const { fetch, told } = setUp([[0], [0]], ({ topics }) =>
      topics[0]!.partitions.length > 1 ? UNDECODABLE : undefined,
    )
    await expect(fetch({ 0: 0, 1: 0 })).rejects.toBe(UNDECODABLE)
    expect(told).toEqual([])
  })

  test('a client of another shape is left alone', () => {
    const assigner = {} as AssignerLike
    const [create] = readingAround([() => assigner], () => undefined)
    expect(create!({ cluster: { findTopicPartitionMetadata: () => [] } as never })).toBe(assigner)
  })
})
