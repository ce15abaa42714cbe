/** Held against kafkajs's own objects: what they have, the fake has, by the same name and of the same kind. */
import * as kafkajs from 'kafkajs'
import { describe, expect, it, vi } from 'vitest'
import { createFakeKafka } from '../../../src/testing'
import { ERROR_CLASSES } from '../../../src/testing/errors'

const real = new kafkajs.Kafka({ brokers: ['nobody:1'], logLevel: kafkajs.logLevel.NOTHING })
const ONCE = { retry: { retries: 0 } }

type Members = Record<string, unknown>

const transactional = { transactionalId: 't', idempotent: true, maxInFlightRequests: 1 }

/** Each kind of client, of kafkajs and of the fake. */
const pairs: Record<string, () => [Members, Members]> = {
  Kafka: () => [members(real), { ...fake() }],
  Consumer: () => [{ ...real.consumer({ groupId: 'g' }) }, { ...fake().consumer({ groupId: 'g' }) }],
  Producer: () => [{ ...real.producer() }, { ...fake().producer() }],
  'idempotent Producer': () => [
    { ...real.producer({ idempotent: true }) },
    { ...fake().producer({ idempotent: true }) },
  ],
  'transactional Producer': () => [{ ...real.producer(transactional) }, { ...fake().producer(transactional) }],
  Admin: () => [{ ...real.admin() }, { ...fake().admin() }],
  Logger: () => [{ ...(real.logger() as object) }, { ...fake().logger() }],
}

const fake = () => createFakeKafka({ topics: { orders: 1 } })

/** Methods of a class are on its prototype; those without a name are kafkajs's own. */
function members(one: object): Members {
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(one)).filter((name) => name !== 'constructor')
  return Object.fromEntries(names.map((name) => [name, (one as Members)[name]]))
}

const kinds = (all: Members): [string, string][] => Object.entries(all).map(([name, value]) => [name, typeof value])

describe('the fake has all that kafkajs has', () => {
  it.each(Object.entries(pairs))('%s: its members', (_, pair) => {
    const [theirs, ours] = pair()
    expect(Object.keys(theirs).length).toBeGreaterThan(3)
    expect(kinds(ours)).toEqual(expect.arrayContaining(kinds(theirs)))
  })

  it('transactions too', async () => {
    const kafka = fake()
    const producer = kafka.producer(transactional)
    await producer.connect()
    const transaction = await producer.transaction()
    // Those that kafkajs/src/producer/index.js gives it; to make one of kafkajs's takes a broker.
    const names = ['sendBatch', 'send', 'abort', 'commit', 'sendOffsets', 'isActive']
    expect(kinds({ ...transaction })).toEqual(expect.arrayContaining(names.map((name) => [name, 'function'])))
    await transaction.abort()
    await producer.disconnect()
  })

  it.each(['Consumer', 'Producer', 'Admin'])('%s: its events, by name', (kind) => {
    const [theirs, ours] = pairs[kind]?.() ?? []
    expect(Object.keys(theirs?.events as object).length).toBeGreaterThan(4)
    expect(ours?.events).toEqual({ ...(theirs?.events as object) })
  })
})

describe('what is there works, or says by name that it is not faked', () => {
  /** Calls without arguments, by someone who is not connected: whatever is wrong with that, it is not a missing part. */
  it.each(['Consumer', 'Producer', 'Admin'])('%s', async (kind) => {
    const [theirs] = pairs[kind]?.() ?? []
    const notFaked: string[] = []
    for (const [name, value] of Object.entries(theirs ?? {})) {
      if (typeof value !== 'function') continue
      const [, ours] = pairs[kind]?.() ?? []
      const call = ours?.[name] as (...args: unknown[]) => unknown
      const outcome = await Promise.resolve()
        .then(() => call({ topics: [], groupId: 'g', topic: 'orders', resources: [] }))
        .catch((e: unknown) => e as { code?: string; message?: string })
      const { code, message } = (outcome ?? {}) as { code?: string; message?: string }
      if (code !== 'RETRYLINE_TESTING') continue
      expect(message).toContain(name)
      notFaked.push(name)
    }
    const acls = [
      'describeAcls',
      'deleteAcls',
      'createAcls',
      'alterPartitionReassignments',
      'listPartitionReassignments',
    ]
    expect(notFaked.sort()).toEqual(kind === 'Admin' ? acls.sort() : [])
  })
})

describe('errors', () => {
  const theirs = kafkajs as unknown as Partial<Record<string, abstract new () => Error>>

  it('are all of classes that kafkajs has, under the same classes', () => {
    void new ERROR_CLASSES.KafkaJSError('the first one made')
    for (const [name, own] of Object.entries(ERROR_CLASSES)) {
      const their = theirs[name]
      if (their === undefined) throw new Error(`kafkajs has no ${name}`)
      const ancestors = (one: object | null): string[] =>
        one === null || one === Error.prototype ? [] : [one.constructor.name, ...ancestors(Object.getPrototypeOf(one))]
      expect([...new Set(ancestors(own.prototype))], name).toEqual(ancestors(their.prototype))
    }
  })

  it('are found by instanceof, wherever they come out', async () => {
    const kafka = fake()
    const producer = kafka.producer(ONCE)
    const isA = async (act: Promise<unknown>, ...classes: (abstract new (...args: never[]) => object)[]) => {
      const e = await act.catch((error: unknown) => error)
      for (const one of classes) expect(e).toBeInstanceOf(one)
    }
    const { KafkaJSError, KafkaJSNonRetriableError, KafkaJSNumberOfRetriesExceeded, KafkaJSProtocolError } = kafkajs
    const send = () => producer.send({ topic: 'orders', messages: [{ value: 'x' }] })
    await isA(send(), KafkaJSError, Error)
    await producer.connect()
    kafka.broker.next('publish').fail('NOT_ENOUGH_REPLICAS')
    const exceeded = send()
    await isA(exceeded, KafkaJSNumberOfRetriesExceeded, KafkaJSNonRetriableError, KafkaJSError)
    await isA(
      exceeded.catch((e: Error) => Promise.reject(e.cause as Error)),
      KafkaJSProtocolError,
    )
    kafka.broker.next('publish').fail('MESSAGE_TOO_LARGE')
    await isA(send(), KafkaJSProtocolError, KafkaJSError)

    const admin = kafka.admin(ONCE)
    await admin.connect()
    await isA(admin.createTopics({ topics: [{ topic: 'bad name' }] }), kafkajs.KafkaJSAggregateError)
    await isA(admin.deleteGroups(['nobody']), kafkajs.KafkaJSDeleteGroupsError)

    const consumer = kafka.consumer({ groupId: 'g', ...ONCE })
    const crashed = vi.fn()
    consumer.on(consumer.events.CRASH, ({ payload }: { payload: { error: Error } }) => void crashed(payload.error))
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
    await consumer.run({
      eachMessage: async () => {
        throw new KafkaJSNonRetriableError('thrown by the handler, of their class')
      },
    })
    kafka.produce('orders', { value: 'x' })
    await kafka.clock.settle()
    expect(crashed).toHaveBeenCalledExactlyOnceWith(expect.any(KafkaJSNonRetriableError))
    expect(() => consumer.seek({ topic: 'orders', partition: 0, offset: '0' })).toThrow(KafkaJSNonRetriableError)
  })
})
