/**
 * What the stories of alike/ cannot tell both brokers: faults that only the fake takes, and what depends on the moment.
 */
import { describe, expect, it } from 'vitest'
import { createFakeKafka, type FakeKafka, type FakeProducer } from '../../../src/testing'
import { PartitionLog } from '../../../src/testing/log'
import type { ProducerMark } from '../../../src/testing/producer-states'

type Transaction = Awaited<ReturnType<FakeProducer['transaction']>>

const fake = (): FakeKafka => createFakeKafka({ topics: { orders: 2, copies: 1 } })

async function transactional(kafka: FakeKafka, config = {}): Promise<FakeProducer> {
  const producer = kafka.client().producer({ transactionalId: 'worker', maxInFlightRequests: 1, ...config })
  await producer.connect()
  return producer
}

const message = (value: string, partition = 0) => ({ topic: 'orders', messages: [{ value, partition }] })
const offsets = (offset: string) => ({
  consumerGroupId: 'billing',
  topics: [{ topic: 'orders', partitions: [{ partition: 0, offset }] }],
})
const values = (kafka: FakeKafka, options = {}): string[] =>
  kafka.records('orders', 0, options).map(({ value }) => String(value))

/** Awaits something for which virtual time has to pass. */
async function passing<T>(kafka: FakeKafka, promise: Promise<T>): Promise<T> {
  let settled = false
  const end = (): void => void (settled = true)
  promise.then(end, end)
  for (let i = 0; !settled && i < 1000; i++) await kafka.clock.advance('1s')
  return promise
}

describe('kafka.records() and a transaction', () => {
  it('shows what is committed, and the rest only to those who ask', async () => {
    const kafka = fake()
    const producer = await transactional(kafka)
    for (const [value, end] of [
      ['a', 'abort'],
      ['b', 'commit'],
    ] as const) {
      const transaction = await producer.transaction()
      await transaction.send(message(value))
      expect(values(kafka)).toEqual([])
      await transaction[end]()
    }
    const open = await producer.transaction()
    await open.send(message('c'))
    kafka.produce('orders', { value: 'plain', partition: 0 })
    expect(values(kafka)).toEqual(['b', 'plain'])
    expect(kafka.records('orders')[0]).not.toHaveProperty('transaction')
    const all = kafka.records('orders', 0, { uncommitted: true })
    expect(all.map(({ value, transaction }) => [String(value), transaction])).toEqual([
      ['a', 'aborted'],
      ['b', 'committed'],
      ['c', 'open'],
      ['plain', undefined],
    ])
  })

  it('counts what its commit brings to a group as a commit without a member', async () => {
    const kafka = fake()
    const transaction = await (await transactional(kafka)).transaction()
    await transaction.sendOffsets(offsets('3'))
    expect(kafka.commits('billing')).toEqual([])
    await transaction.commit()
    expect(kafka.commits('billing')).toMatchObject([{ offset: 3n, memberId: '', generationId: -1 }])
    expect(kafka.committed('billing', 'orders').get(0)).toEqual({ offset: 3n, metadata: '' })
  })
})

describe('kafka.broker.transaction()', () => {
  it('tells who owns a transactional id and what is open', async () => {
    const kafka = fake()
    expect(() => kafka.broker.transaction('worker')).toThrow(/no producer has begun a transaction as worker/)
    const producer = await transactional(kafka)
    const transaction = await producer.transaction()
    expect(kafka.broker.transaction('worker')).toMatchObject({ state: 'Empty', epoch: 0, partitions: [], groups: [] })
    await transaction.send(message('a', 1))
    await transaction.sendOffsets(offsets('3'))
    expect(kafka.broker.transaction('worker')).toMatchObject({
      state: 'Ongoing',
      partitions: [{ topic: 'orders', partitions: [1] }],
      groups: ['billing'],
    })
    await transaction.commit()
    expect(kafka.broker.transaction('worker')).toMatchObject({ state: 'CompleteCommit', partitions: [], groups: [] })
    await (await transactional(kafka)).transaction()
    expect(kafka.broker.transaction('worker')).toMatchObject({ state: 'Empty', epoch: 1 })
  })
})

describe('markers that are held', () => {
  it('leave the transaction unseen, and refuse what comes next with CONCURRENT_TRANSACTIONS', async () => {
    const kafka = fake()
    const producer = await transactional(kafka)
    const first = await producer.transaction()
    await first.send(message('a'))
    const markers = kafka.broker.next('markers', { transactionalId: 'worker' }).hold()
    await first.commit()
    await markers.caught
    expect(kafka.broker.transaction('worker').state).toBe('PrepareCommit')
    expect(values(kafka)).toEqual([])
    const second = await producer.transaction()
    await expect(second.sendOffsets(offsets('1'))).rejects.toMatchObject({ type: 'CONCURRENT_TRANSACTIONS' })
    const sending = second.send(message('b'))
    await kafka.clock.settle()
    markers.release()
    await passing(kafka, sending)
    await second.commit()
    expect(values(kafka)).toEqual(['a', 'b'])
  })

  it('let a new owner give up after five more tries', async () => {
    const kafka = fake()
    const first = await (await transactional(kafka)).transaction()
    await first.send(message('a'))
    const markers = kafka.broker.next('markers').hold()
    const taking = (await transactional(kafka, { retry: { retries: 50 } })).transaction()
    await expect(passing(kafka, taking)).rejects.toMatchObject({
      name: 'KafkaJSNumberOfRetriesExceeded',
      retryCount: 5,
      cause: { type: 'CONCURRENT_TRANSACTIONS' },
    })
    markers.release()
    await kafka.clock.settle()
    expect(kafka.broker.transaction('worker').state).toBe('CompleteAbort')
  })

  it('come all the same where a test would have them fail: a broker tries until they stand', async () => {
    const kafka = fake()
    const first = await (await transactional(kafka)).transaction()
    await first.send(message('a'))
    kafka.broker.next('markers').fail('NOT_ENOUGH_REPLICAS')
    await first.commit()
    expect(values(kafka)).toEqual(['a'])
  })
})

describe('the time-out of a transaction', () => {
  it('runs from its first request, on the clock, whatever is added', async () => {
    const kafka = fake()
    const producer = await transactional(kafka, { transactionTimeout: 10_000 })
    const transaction = await producer.transaction()
    await kafka.clock.advance('1h')
    await transaction.send(message('a'))
    await kafka.clock.advance(9000)
    await transaction.send(message('b'))
    await kafka.clock.advance(999)
    expect(kafka.broker.transaction('worker').state).toBe('Ongoing')
    await kafka.clock.advance(1)
    expect(kafka.broker.transaction('worker')).toMatchObject({ state: 'CompleteAbort', epoch: 1 })
    await expect(transaction.commit()).rejects.toMatchObject({ type: 'INVALID_PRODUCER_EPOCH' })
  })

  it('does not run on behind an end', async () => {
    const kafka = fake()
    const producer = await transactional(kafka, { transactionTimeout: 10_000 })
    const first = await producer.transaction()
    await first.send(message('a'))
    await kafka.clock.advance(9000)
    await first.commit()
    const second = await producer.transaction()
    await second.send(message('b'))
    await kafka.clock.advance(9000)
    await second.commit()
    expect(values(kafka)).toEqual(['a', 'b'])
  })
})

describe('a request that comes late', () => {
  it('finds its transaction over, and does not open it again', async () => {
    const kafka = fake()
    const producer = await transactional(kafka, { retry: { retries: 0 } })
    const transaction = await producer.transaction()
    await transaction.send(message('a'))
    const held = kafka.broker.next('publish').hold()
    const late = transaction.send(message('b')).catch((e: unknown) => e)
    await held.caught
    await transaction.abort()
    held.release()
    expect(await late).toMatchObject({ type: 'INVALID_TXN_STATE' })
    expect(values(kafka, { uncommitted: true })).toEqual(['a'])
    const next = await producer.transaction()
    await next.send(message('c'))
    await next.commit()
    expect(values(kafka)).toEqual(['c'])
  })

  it('of an owner that has been fenced is refused', async () => {
    const kafka = fake()
    const old = await (await transactional(kafka, { retry: { retries: 0 } })).transaction()
    await old.send(message('a'))
    const held = kafka.broker.next('endTransaction').hold()
    const late = old.commit().catch((e: unknown) => e)
    await held.caught
    await passing(kafka, (await transactional(kafka)).transaction())
    held.release()
    expect(await late).toMatchObject({ type: 'INVALID_PRODUCER_EPOCH' })
    expect(values(kafka)).toEqual([])
  })
})

describe('requests of a transaction that fail', () => {
  const acts: Record<string, (transaction: Transaction) => Promise<unknown>> = {
    addPartitions: (transaction) => transaction.send(message('b', 1)),
    addOffsets: (transaction) => transaction.sendOffsets(offsets('1')),
    txnOffsets: (transaction) => transaction.sendOffsets(offsets('1')),
    endTransaction: (transaction) => transaction.commit(),
  }

  it.each(Object.keys(acts) as ('addPartitions' | 'addOffsets' | 'txnOffsets' | 'endTransaction')[])(
    '%s',
    async (kind) => {
      const kafka = fake()
      const transaction = await (await transactional(kafka)).transaction()
      await transaction.send(message('a'))
      kafka.broker.next(kind, { transactionalId: 'other' }).fail('UNKNOWN')
      kafka.broker.next(kind, { transactionalId: 'worker' }).fail('TRANSACTIONAL_ID_AUTHORIZATION_FAILED')
      await expect(acts[kind]?.(transaction)).rejects.toMatchObject({ type: 'TRANSACTIONAL_ID_AUTHORIZATION_FAILED' })
      expect(values(kafka)).toEqual([])
    },
  )

  it('the one for an id is tried again for what passes, and else not', async () => {
    const kafka = fake()
    const producer = await transactional(kafka)
    kafka.broker.next('initProducer').fail('GROUP_LOAD_IN_PROGRESS')
    expect((await passing(kafka, producer.transaction())).isActive()).toBe(true)
    const other = kafka.producer({ idempotent: true })
    kafka.broker.next('initProducer').fail('KAFKA_STORAGE_ERROR')
    await expect(other.connect()).rejects.toMatchObject({ type: 'KAFKA_STORAGE_ERROR' })
  })
})

describe('an idempotent producer', () => {
  async function idempotent(kafka: FakeKafka): Promise<FakeProducer> {
    const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    return producer
  }

  it('takes a refusal for the end, and gives the sequence numbers back', async () => {
    const kafka = fake()
    const producer = await idempotent(kafka)
    kafka.broker.next('publish').fail('DUPLICATE_SEQUENCE_NUMBER')
    await expect(producer.send(message('a'))).rejects.toMatchObject({ type: 'DUPLICATE_SEQUENCE_NUMBER' })
    await producer.send(message('b'))
    await producer.send(message('c'))
    expect(values(kafka)).toEqual(['b', 'c'])
  })

  it('whose answer is given up: whoever is next in the line takes its place, is acknowledged, and one is nowhere', async () => {
    const kafka = fake()
    const producer = await idempotent(kafka)
    const held = kafka.broker.next('publish').hold('answer')
    const sends = ['1', '2', '3', '4', '5', '6', '7'].map((value) => producer.send(message(value)))
    await held.caught
    // Given up after 30 s, while it stands on the log.
    await kafka.clock.advance('31s')
    held.release()
    const answers = await passing(kafka, Promise.all(sends))
    expect(new Set(answers.map(([one]) => one?.baseOffset)).size).toBe(7)
    expect(values(kafka)).toHaveLength(7)
    expect(new Set(values(kafka)).size).toBe(6)
  })

  it('sends one request at a time, and waits for its turn for 65 s at most', async () => {
    const kafka = fake()
    const producer = await idempotent(kafka)
    const holds = [1, 2, 3].map(() => kafka.broker.next('publish').hold())
    const ends = ['a', 'b', 'c', 'd'].map((value) =>
      producer.send(message(value)).then(
        () => value,
        (e: Error) => `${e.name}: ${e.message}`,
      ),
    )
    await holds[0]?.caught
    // Each holder's request is given up after 30 s, and its retry goes to the end of the line.
    for (let i = 0; i < 66; i++) await kafka.clock.advance('1s')
    expect(await ends[3]).toBe('KafkaJSLockTimeout: Timeout while acquiring lock (3 waiting locks)')
    for (const hold of holds) hold.release()
    await passing(kafka, Promise.all(ends))
  })
})

describe('offsets of a transaction and the client that sends them', () => {
  it('are taken for committed by the consumers of that client, also when it aborts: nothing is read again', async () => {
    const kafka = fake()
    for (const value of ['a', 'b', 'c']) kafka.produce('orders', { value, partition: 0 })
    const consumer = kafka.consumer({ groupId: 'billing' })
    const commits: unknown[] = []
    consumer.on(consumer.events.COMMIT_OFFSETS, ({ payload }: { payload: { topics: unknown } }) =>
      commits.push(payload.topics),
    )
    const producer = kafka.producer({ transactionalId: 'worker' })
    await producer.connect()
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
    await consumer.run({
      eachBatchAutoResolve: false,
      eachBatch: async ({ batch, resolveOffset }) => {
        const transaction = await producer.transaction()
        const end = String(BigInt(batch.lastOffset()) + 1n)
        await transaction.sendOffsets(offsets(end))
        await transaction.abort()
        resolveOffset(batch.lastOffset())
      },
    })
    await kafka.clock.settle()
    // The auto-commit at the end of the batch finds nothing that is not committed already.
    expect(commits).toEqual([])
    expect(kafka.committed('billing', 'orders').get(0)).toBeUndefined()
    await consumer.disconnect()
  })
})

describe('a broker that goes down', () => {
  it('keeps what it knows of producers: a transaction goes on, and its time runs', async () => {
    const kafka = fake()
    const producer = await transactional(kafka, { transactionTimeout: 10_000 })
    const first = await producer.transaction()
    await first.send(message('a'))
    kafka.broker.down()
    kafka.broker.up()
    await passing(kafka, first.send(message('b')))
    await first.commit()
    expect(values(kafka)).toEqual(['a', 'b'])
  })
})

describe('what a partition knows of a producer', () => {
  const mark = (sequence: number, epoch = 0): ProducerMark => ({
    producerId: 1n,
    epoch,
    sequence,
    transactional: false,
  })
  const record = { timestamp: 5, key: null, value: null, headers: [], control: false }
  const type = (act: () => unknown): unknown => {
    try {
      return act()
    } catch (e) {
      return (e as { type?: string }).type
    }
  }

  it('is its last five batches: older ones, gaps and old epochs are refused', () => {
    const log = new PartitionLog()
    for (let i = 0; i < 6; i++) log.append([record, record], mark(2 * i))
    const check = (sequence: number, count = 2, epoch = 0): unknown =>
      type(() => log.producers.check(mark(sequence, epoch), count))
    expect(check(2)).toEqual({ base: 2n, timestamp: 5, first: 2, last: 3 })
    expect(check(10)).toMatchObject({ base: 10n })
    expect(check(0)).toBe('OUT_OF_ORDER_SEQUENCE_NUMBER')
    expect(check(10, 1)).toBe('OUT_OF_ORDER_SEQUENCE_NUMBER')
    expect(check(13)).toBe('OUT_OF_ORDER_SEQUENCE_NUMBER')
    expect(check(12)).toBeUndefined()
    expect(check(12, 2, 1)).toBe('OUT_OF_ORDER_SEQUENCE_NUMBER')
    expect(check(0, 2, 1)).toBeUndefined()
    log.appendMarker({ producerId: 1n, epoch: 1 }, false, 6)
    expect(check(12)).toBe('INVALID_PRODUCER_EPOCH')
    expect(check(10)).toBe('INVALID_PRODUCER_EPOCH')
  })

  it('goes round at the highest 32-bit integer', () => {
    const log = new PartitionLog()
    log.append([record], mark(2 ** 31 - 1))
    expect(log.producers.check(mark(0), 1)).toBeUndefined()
    expect(type(() => log.producers.check(mark(1), 1))).toBe('OUT_OF_ORDER_SEQUENCE_NUMBER')
  })
})
