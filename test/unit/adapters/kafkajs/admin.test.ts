import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { createKafkajsAdmin } from '../../../../src/adapters/kafkajs/admin'
import { errorType } from '../../../../src/adapters/kafkajs/errors'
import { createStubKafka } from './stub'

const missing = Object.assign(new Error('no such topic'), { type: 'UNKNOWN_TOPIC_OR_PARTITION' })

function setUp(topics: Record<string, number>) {
  const calls: string[] = []
  const kafka = createStubKafka({
    async fetchTopicMetadata(options) {
      calls.push(`metadata ${options?.topics.join()}`)
      if (options!.topics.some((topic) => topics[topic] === undefined)) throw missing
      return {
        topics: options!.topics.map((name) => ({
          name,
          partitions: Array.from({ length: topics[name]! }, (_, partitionId) => ({ partitionId })),
        })),
      }
    },
    async fetchOffsets({ groupId, topics: asked }) {
      calls.push(`offsets ${groupId} ${asked?.join()}`)
      return asked!.map((topic) => ({
        topic,
        partitions: [{ partition: 0, offset: '9007199254740993', metadata: null }],
      }))
    },
    async fetchTopicOffsets(topic) {
      calls.push(`ranges ${topic}`)
      return [{ partition: 0, offset: '9007199254740995', low: '9007199254740993', high: '9007199254740995' }]
    },
    async fetchTopicOffsetsByTimestamp(topic, time) {
      calls.push(`at ${topic} ${time}`)
      return [{ partition: 0, offset: '9007199254740993' }]
    },
    async describeConfigs() {
      return {
        resources: [
          {
            resourceName: 'a',
            configEntries: [
              { configName: 'cleanup.policy', configValue: 'compact' },
              { configName: 'retention.ms', configValue: '-1' },
              { configName: 'max.message.bytes', configValue: '' },
            ],
          },
        ],
      }
    },
  })
  return { admin: createKafkajsAdmin(kafka), calls }
}

describe('partitions()', () => {
  test('counts; a topic that does not exist is left out, and the others are found all the same', async () => {
    const { admin, calls } = setUp({ a: 3, b: 1 })
    expect(await admin.partitions(['a', 'b'])).toEqual(
      new Map([
        ['a', 3],
        ['b', 1],
      ]),
    )
    expect(calls).toEqual(['metadata a,b'])
    expect(await admin.partitions(['a', 'gone', 'b'])).toEqual(
      new Map([
        ['a', 3],
        ['b', 1],
      ]),
    )
    expect(await admin.partitions(['gone'])).toEqual(new Map())
    expect(await admin.partitions([])).toEqual(new Map())
  })

  test('any other error is an error', async () => {
    const kafka = createStubKafka({ fetchTopicMetadata: () => Promise.reject(new Error('not authorised')) })
    await expect(createKafkajsAdmin(kafka).partitions(['a'])).rejects.toThrow('not authorised')
  })
})

describe('rule 8: the metadata of our own topics is loaded before the first look-up of offsets', () => {
  test('of committed ones, once for each topic', async () => {
    const { admin, calls } = setUp({ a: 1, b: 1 })
    await admin.committed('g', ['a'])
    await admin.committed('g', ['a', 'b'])
    await admin.committed('g', ['a', 'b'])
    expect(calls).toEqual(['metadata a', 'offsets g a', 'metadata b', 'offsets g a,b', 'offsets g a,b'])
  })

  test('of log ranges and of times', async () => {
    const { admin, calls } = setUp({ a: 1, b: 1 })
    await admin.ranges('a')
    await admin.offsetsAt('b', 12)
    expect(calls).toEqual(['metadata a', 'ranges a', 'metadata b', 'at b 12'])
  })

  test('not where they are known by then', async () => {
    const { admin, calls } = setUp({ a: 1 })
    await admin.partitions(['a'])
    await admin.committed('g', ['a'])
    expect(calls).toEqual(['metadata a', 'offsets g a'])
  })
})

describe('P1: an answer without a topic, since kafkajs has lost its metadata to another question, is none', () => {
  function forgetful(times: number) {
    const calls: string[] = []
    let left = times
    const lost = (): boolean => left-- > 0
    const kafka = createStubKafka({
      async fetchTopicMetadata(options) {
        calls.push(`metadata ${options?.topics.join()}`)
        return { topics: options!.topics.map((name) => ({ name, partitions: [{ partitionId: 0 }] })) }
      },
      async fetchOffsets({ topics: asked }) {
        calls.push('offsets')
        return asked!.map((topic) => ({
          topic,
          partitions: lost() ? [] : [{ partition: 0, offset: '7', metadata: null }],
        }))
      },
      async fetchTopicOffsets() {
        calls.push('ranges')
        if (lost())
          throw new TypeError("Cannot destructure property 'partitions' of 'low.pop(...)' as it is undefined.")
        return [{ partition: 0, offset: '9', low: '3', high: '9' }]
      },
    })
    return { admin: createKafkajsAdmin(kafka), calls }
  }

  test('it is asked again, with the metadata loaded anew', async () => {
    const offsets = forgetful(1)
    expect(await offsets.admin.committed('g', ['a'])).toMatchObject([{ partition: 0, offset: 7n }])
    expect(offsets.calls).toEqual(['metadata a', 'offsets', 'metadata a', 'offsets'])
    const ranges = forgetful(1)
    expect(await ranges.admin.ranges('a')).toMatchObject([{ low: 3n, high: 9n }])
    expect(ranges.calls).toEqual(['metadata a', 'ranges', 'metadata a', 'ranges'])
  })

  test('and where that does not help it is an error, never "no offset"', async () => {
    await expect(forgetful(99).admin.committed('g', ['a'])).rejects.toThrow("no metadata of 'a'")
    await expect(forgetful(99).admin.ranges('a')).rejects.toThrow("no metadata of 'a'")
  })
})

test('P8: offsets beyond 2^53 are exact', async () => {
  const { admin } = setUp({ a: 1 })
  const at = 2n ** 53n + 1n
  expect(await admin.committed('g', ['a'])).toEqual([{ topic: 'a', partition: 0, offset: at, metadata: null }])
  expect(await admin.ranges('a')).toEqual([{ topic: 'a', partition: 0, low: at, high: at + 2n }])
  expect(await admin.offsetsAt('a', 0)).toEqual(new Map([[0, at]]))
})

test('settings: numbers as numbers, and what is not told is undefined', async () => {
  const { admin } = setUp({ a: 1 })
  expect(await admin.settings(['a'])).toEqual(
    new Map([['a', { cleanupPolicy: 'compact', retentionMs: -1, maxMessageBytes: undefined }]]),
  )
})

test('errorType finds the type through what kafkajs wraps, and never throws', () => {
  const cyclic: { cause?: unknown } = {}
  cyclic.cause = cyclic
  expect(errorType(missing)).toBe('UNKNOWN_TOPIC_OR_PARTITION')
  expect(errorType(new Error('retries', { cause: new Error('request', { cause: missing }) }))).toBe(missing.type)
  for (const thing of [undefined, null, 'x', cyclic, { type: 7 }]) expect(errorType(thing)).toBeUndefined()
})

describe('a request that gets no answer', () => {
  function setUp() {
    const made: { timeOut(): void; calls: string[] }[] = []
    const kafka = {
      admin: () => {
        const calls: string[] = []
        let listener = (): void => undefined
        const index = made.push({ timeOut: () => listener(), calls })
        return {
          connect: async () => void calls.push('connect'),
          disconnect: async () => void calls.push('disconnect'),
          on: (name: string, heard: () => void) => {
            expect(name).toBe('admin.network.request_timeout')
            listener = heard
          },
          // The first never answers: its connection was cut in the middle of an answer.
          listTopics: () => (index === 1 ? new Promise(() => undefined) : Promise.resolve([`of ${index}`])),
        }
      },
    }
    return { made, admin: createKafkajsAdmin(kafka as never) }
  }

  test('fails at once, and another client takes the place of the one that may be poisoned', async () => {
    const { made, admin } = setUp()
    await admin.connect()
    const waiting = expect(admin.listTopics()).rejects.toMatchObject({ code: 'RETRYLINE_CONNECT' })
    await Promise.resolve()
    made[0]!.timeOut()
    // It may tell of further requests.
    made[0]!.timeOut()
    await waiting
    expect(await admin.listTopics()).toEqual(['of 2'])
    expect(made.map(({ calls }) => calls)).toEqual([['connect', 'disconnect'], ['connect']])
    await admin.disconnect()
    made[1]!.timeOut()
    expect(made).toHaveLength(2)
    expect(made[1]!.calls).toEqual(['connect', 'disconnect'])
  })
})

test('what was answered is let go: a connection that lasts for months does not keep it', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const kafka = createStubKafka({ listTopics: async () => Array.from({ length: 3 }, (_, n) => `t${n}`) })
  const admin = createKafkajsAdmin(kafka)
  const answers: WeakRef<object>[] = []
  for (let i = 0; i < 20; i++) answers.push(new WeakRef(await admin.listTopics()))
  for (let i = 0; i < 5; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    collect()
  }
  expect(answers.filter((answer) => answer.deref() !== undefined).length).toBeLessThan(5)
})

describe('createTopics()', () => {
  test('succeeds where the broker that was asked does not know the new topics yet', async () => {
    const made: string[] = []
    const kafka = createStubKafka({
      // As kafkajs does it: with waitForLeaders it asks for the metadata at once, and gives up at UNKNOWN_TOPIC_OR_PARTITION.
      createTopics: async ({ topics, waitForLeaders }) => {
        made.push(...topics.map(({ topic }) => topic))
        if (waitForLeaders !== false) throw missing
        return true
      },
    })
    await createKafkajsAdmin(kafka).createTopics([{ topic: 'a.retry.1m', partitions: 3, config: {} }])
    expect(made).toEqual(['a.retry.1m'])
  })
})
