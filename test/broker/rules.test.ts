/**
 * What the rules of the engine rest on: facts of kafkajs 2.2.4 and of a real broker, pinned, so that a new version of
 * either is noticed; and those rules that only a real log can show. What shows at the seam is in
 * test/contract/rules-seam.ts, what shows in a rebalance in test/contract/p7-*.ts.
 */
import { Kafka, logLevel, type Consumer, type EachBatchPayload } from 'kafkajs'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Scene } from '../contract/scene'
import type { Stage } from '../contract/stage'
import { realStage } from '../contract/stage-real'
import { describeWithBroker } from '../helpers/broker-shared'

describeWithBroker('facts behind the rules', ({ brokers }) => {
  const kafka = new Kafka({ clientId: 'facts', brokers, logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50 } })
  let stage: Stage
  let ends: (() => Promise<unknown>)[]
  let topic: string
  let group: string

  beforeEach(async () => {
    stage = await realStage(brokers)
    ends = [() => stage.close()]
    topic = stage.unique('facts')
    group = stage.unique('group')
  })
  afterEach(async () => {
    for (const end of ends.reverse()) await end()
  })

  function consumer(): Consumer {
    const one = kafka.consumer({ groupId: group, maxWaitTimeInMs: 100, retry: { initialRetryTime: 50 } })
    ends.push(() => one.disconnect())
    return one
  }

  async function run(
    one: Consumer,
    eachBatch: (payload: EachBatchPayload) => Promise<void> = async () => undefined,
  ): Promise<void> {
    await one.connect()
    await one.subscribe({ topics: [topic], fromBeginning: true })
    await one.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch })
  }

  async function transactional(transactionalId: string) {
    const producer = kafka.producer({
      transactionalId,
      idempotent: true,
      maxInFlightRequests: 1,
      retry: { initialRetryTime: 50, retries: 3 },
    })
    ends.push(() => producer.disconnect())
    await producer.connect()
    return producer
  }

  /** As a member that leaves again; `admin.setOffsets` takes 5 s for the same. */
  async function setOffset(offset: string): Promise<void> {
    const one = consumer()
    const joined = new Promise((resolve) => one.on('consumer.group_join', resolve))
    await run(one)
    await joined
    await one.commitOffsets([{ topic, partition: 0, offset }])
    await one.disconnect()
  }

  const committed = async (partition = 0): Promise<bigint | undefined> =>
    (await stage.committed(group, topic)).get(partition)

  async function scene(partitions = 1): Promise<Scene> {
    const opened = await Scene.open(stage, { partitions, topic, group })
    ends.push(() => opened.close())
    return opened
  }

  it('rule 1: where the log start has passed the position, kafkajs commits -2 by itself, and tells nobody', async () => {
    await stage.createTopics({ [topic]: 1 })
    await stage.produce(
      topic,
      0,
      Array.from({ length: 10 }, (_, n) => ({ value: String(n) })),
    )
    await setOffset('5')
    await stage.deleteRecords(topic, 0, 8n)
    const fetched: unknown[] = []
    const one = consumer()
    let told = 0
    one.on('consumer.commit_offsets', () => void told++)
    await run(one, async ({ batch, pause }) => {
      fetched.push((batch as unknown as { fetchedOffset: unknown }).fetchedOffset)
      pause()
    })
    await stage.until(() => fetched.length > 0, 'a batch')
    expect(String(fetched[0])).toBe('8')
    expect([await committed(), told]).toEqual([-2n, 0])
  })

  it('rule 4: a commit from inside the first GROUP_JOIN resolves and commits nothing; one after run() does', async () => {
    await stage.createTopics({ [topic]: 1 })
    const one = consumer()
    let told = 0
    let early: Promise<void> | undefined
    one.on('consumer.commit_offsets', () => void told++)
    one.on('consumer.group_join', () => {
      early = one.commitOffsets([{ topic, partition: 0, offset: '0' }])
    })
    await run(one)
    await stage.until(() => early !== undefined, 'the join')
    await early
    expect([await committed(), told]).toEqual([-1n, 0])
    await one.commitOffsets([{ topic, partition: 0, offset: '0' }])
    expect([await committed(), told]).toEqual([0n, 1])
  })

  it('rule 5: a GROUP_JOIN listener that throws kills the consumer for good', async () => {
    await stage.createTopics({ [topic]: 1 })
    const one = consumer()
    const crashes: boolean[] = []
    one.on('consumer.crash', ({ payload }) => void crashes.push(payload.restart))
    one.on('consumer.group_join', () => {
      throw new TypeError('a bug in a listener')
    })
    await run(one)
    await stage.until(() => crashes.length > 0, 'the crash')
    expect(crashes).toEqual([false])
  })

  it('rule 9: a batch carries the position that was asked for, though the types do not say so', async () => {
    await stage.createTopics({ [topic]: 1 })
    await stage.produce(topic, 0, [{ value: 'a' }, { value: 'b' }])
    await setOffset('1')
    const fetched: unknown[] = []
    await run(consumer(), async ({ batch, pause }) => {
      fetched.push(
        (batch as unknown as { fetchedOffset: unknown }).fetchedOffset,
        batch.firstOffset(),
        batch.lastOffset(),
      )
      pause()
    })
    await stage.until(() => fetched.length > 0, 'a batch')
    expect(fetched.map(String)).toEqual(['1', '1', '1'])
  })

  it('rule 11: transaction markers, aborted records and a marker at the very end are stepped over, up to the log end', async () => {
    const one = await scene()
    const producer = await transactional(stage.unique('tx'))
    const send = async (values: string[], how: 'commit' | 'abort'): Promise<void> => {
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: values.map((value) => ({ value, partition: 0 })) })
      await transaction[how]()
    }
    await send(['a', 'b'], 'commit')
    await send(['x', 'y'], 'abort')
    await send(['c'], 'commit')
    await one.join()
    await one.untilDone()
    await send(['z'], 'abort')
    await one.untilDone()
    expect(one.values()).toEqual(['a', 'b', 'c'])
    expect((await stage.ends(topic)).get(0)?.high).toBe(10n)
    one.expectNoStepBack()
  })

  it('rule 11: gaps that compaction left are stepped over', async () => {
    const compacted = { 'cleanup.policy': 'compact', 'segment.ms': '100', 'min.cleanable.dirty.ratio': '0.01' }
    await stage.createTopics({ [topic]: 1 }, { ...compacted, 'max.compaction.lag.ms': '200' })
    await stage.createTopics({ [`${topic}.retry.200ms`]: 1, [`${topic}.dlq`]: 1 })
    await stage.produce(
      topic,
      0,
      Array.from({ length: 20 }, (_, n) => ({ key: 'k', value: `old ${n}` })),
    )
    await stage.until(async () => {
      await stage.produce(topic, 0, [{ key: 'k', value: 'newest' }])
      return (await stage.records(topic)).every(({ value }) => value?.toString() === 'newest')
    }, 'the log is compacted')
    const one = Scene.over(stage, { topic, group })
    ends.push(() => one.close())
    await one.join()
    await one.untilDone()
    expect(new Set(one.values())).toEqual(new Set(['newest']))
    expect(Number(one.calls[0]?.offset)).toBeGreaterThanOrEqual(20)
  })

  it('rule 16: kafkajs resolves without a word for a partition that is not there', async () => {
    await stage.createTopics({ [topic]: 2 })
    const producer = kafka.producer({
      createPartitioner:
        () =>
        ({ message }) =>
          message.partition ?? 0,
    })
    ends.push(() => producer.disconnect())
    await producer.connect()
    const send = async (...partitions: number[]): Promise<number[]> => {
      const messages = partitions.map((partition) => ({ value: 'v', partition }))
      return (await producer.sendBatch({ topicMessages: [{ topic, messages }] }))
        .map(({ partition }) => partition)
        .sort()
    }
    expect(await send(7)).toEqual([])
    expect(await send(0, 7)).toEqual([0])
    // One entry for a partition, not for a record.
    expect(await send(0, 0, 1)).toEqual([0, 1])
    expect(await stage.records(topic)).toHaveLength(4)
  })

  it('rule 18: connect() does not fence the producer before, transaction() does', async () => {
    await stage.createTopics({ [topic]: 1 })
    const id = stage.unique('tx')
    const before = await transactional(id)
    const open = await before.transaction()
    await open.send({ topic, messages: [{ value: 'by the old one' }] })
    const after = await transactional(id)
    await open.commit()
    // The end that is told is that of what is committed, and comes a moment later.
    await stage.until(async () => (await stage.records(topic)).length === 1, 'the record of the old producer stands')

    const late = await before.transaction()
    await late.send({ topic, messages: [{ value: 'never committed' }] })
    await (await after.transaction()).abort()
    await expect(late.commit()).rejects.toMatchObject({
      type: expect.stringMatching(/INVALID_PRODUCER_EPOCH|PRODUCER_FENCED/),
    })
  })

  it("rule 18: a transaction's offsets carry no member: anybody's move them back; pending ones are not read", async () => {
    await stage.createTopics({ [topic]: 1 })
    await stage.produce(
      topic,
      0,
      Array.from({ length: 30 }, (_, n) => ({ value: String(n) })),
    )
    await setOffset('20')
    const producer = await transactional(stage.unique('tx'))
    const transaction = await producer.transaction()
    await transaction.sendOffsets({
      consumerGroupId: group,
      topics: [{ topic, partitions: [{ partition: 0, offset: '1' }] }],
    })
    expect(await committed()).toBe(20n)
    await transaction.commit()
    await stage.until(async () => (await committed()) === 1n, 'the offset has moved back')
  })

  it('rule 19: metadata have at most 4,096 characters, not bytes; for one entry too long kafkajs rejects, though the others are stored', async () => {
    await stage.createTopics({ [topic]: 2 })
    // Records to stand behind the offsets: a position past the log's end would have kafkajs commit -2 over them.
    const records = Array.from({ length: 5 }, (_, n) => ({ value: String(n) }))
    await Promise.all([stage.produce(topic, 0, records), stage.produce(topic, 1, records)])
    const one = consumer()
    const joined = new Promise((resolve) => one.on('consumer.group_join', resolve))
    await run(one)
    await joined
    const commit = (offset: string, ...metadata: string[]): Promise<void> =>
      one.commitOffsets(metadata.map((text, partition) => ({ topic, partition, offset, metadata: text })))
    await commit('1', 'é'.repeat(4_096))
    expect([await committed(0), await committed(1)]).toEqual([1n, -1n])
    await expect(commit('2', '', 'x'.repeat(4_097))).rejects.toMatchObject({
      cause: { type: 'OFFSET_METADATA_TOO_LARGE' },
    })
    expect([await committed(0), await committed(1)]).toEqual([2n, -1n])
  })
})
