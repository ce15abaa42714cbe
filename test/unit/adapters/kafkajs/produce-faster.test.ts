import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { encodeProduce } from '../../../../src/adapters/kafkajs/produce-encoder'
import { producingFaster, type ProducingCluster } from '../../../../src/adapters/kafkajs/produce-faster'

/** kafkajs's own broker, on connections of the test's. */
const require = createRequire(import.meta.url)
const { lookup } = require('kafkajs/src/protocol/requests') as { lookup(versions: object): unknown }
const PRODUCE = 0
const Broker = require('kafkajs/src/broker') as new (options: object) => RealBroker

interface RealBroker {
  lookupRequest: unknown
  readonly connectionPool: Pool
  produce(request: object): Promise<unknown>
  metadata(topics: string[]): Promise<unknown>
}
interface Request {
  readonly apiName: string
  readonly apiVersion: number
  encode(): Promise<{ buf: Buffer; buffer: Buffer }>
}

class Pool {
  readonly host = 'broker'
  readonly port = 9092
  readonly connectionTimeout = 1000
  readonly asked: Request[] = []

  send({ request }: { request: Request }): Promise<unknown> {
    this.asked.push(request)
    return Promise.resolve({ topics: [] })
  }
}

const quiet = { debug() {}, info() {}, warn() {}, error() {}, namespace: () => quiet }
const NOW = 1_790_000_000_123

async function setUp(maxVersion = 7): Promise<{ broker: RealBroker; pool: Pool; again(): Promise<unknown> }> {
  const pool = new Pool()
  const broker = new Broker({ connectionPool: pool, logger: quiet })
  broker.lookupRequest = lookup({ [PRODUCE]: { minVersion: 0, maxVersion }, 3: { minVersion: 0, maxVersion: 6 } })
  const cluster = { findBroker: () => Promise.resolve(broker) } as unknown as ProducingCluster
  producingFaster(cluster, () => NOW)
  const again = (): Promise<unknown> => cluster.findBroker!(1 as never)
  await again()
  return { broker, pool, again }
}

const ask = (value: unknown): object => ({
  acks: -1,
  timeout: 30_000,
  topicData: [{ topic: 'orders', partitions: [{ partition: 3, messages: [{ key: null, value }], firstSequence: 0 }] }],
})
const ours = (value: unknown): Buffer | undefined => encodeProduce(ask(value) as never, NOW)
const written = async (request: Request | undefined): Promise<Buffer> => (await request!.encode()).buffer

test('each request is written of what it was given', async () => {
  const { broker, pool, again } = await setUp()
  // It is the same broker every time: it must not be caught twice.
  await again()
  const [one, two] = [Buffer.from('one'), Buffer.from('two')]
  await Promise.all([broker.produce(ask(one)), broker.produce(ask(two))])
  const bytes = await Promise.all(pool.asked.map(written))
  expect(bytes).toEqual([ours(one), ours(two)])
  expect((await pool.asked[0]!.encode()).buf).toEqual(ours(one))
  expect(Object.keys(pool.asked[0]!)).toContain('expectResponse')
  // Whatever is sent next goes its own way.
  expect(Object.hasOwn(pool, 'send')).toBe(false)
})

test('what is not for our encoder is written by kafkajs', async () => {
  const { broker, pool } = await setUp()
  await broker.produce(ask('text'))
  expect(ours('text')).toBeUndefined()
  expect((await written(pool.asked[0])).includes('text')).toBe(true)
  await broker.produce(ask(7))
  await expect(pool.asked[1]!.encode()).rejects.toThrow(TypeError)
})

test('a request of another layout, or of another kind, is left as it is', async () => {
  const { broker, pool } = await setUp(2)
  await broker.produce(ask(Buffer.from('old')))
  expect(pool.asked[0]!.apiVersion).toBe(2)
  expect(await written(pool.asked[0])).not.toEqual(ours(Buffer.from('old')))
  await broker.metadata(['orders'])
  expect(pool.asked[1]!.apiName).toBe('Metadata')
  expect((await written(pool.asked[1])).includes('orders')).toBe(true)
})

test('a request that is refused before it is sent leaves nothing behind', async () => {
  const { broker, pool } = await setUp()
  broker.lookupRequest = () => {
    throw new Error('not connected')
  }
  await expect(broker.produce(ask(null))).rejects.toThrow('not connected')
  expect(Object.hasOwn(pool, 'send')).toBe(false)
})

test('one that is handed over in a later turn is written by kafkajs', async () => {
  const pool = new Pool()
  const request: Request = { apiName: 'Produce', apiVersion: 7, encode: () => Promise.reject(new Error('by kafkajs')) }
  const broker = {
    connectionPool: pool,
    produce: async (): Promise<unknown> => {
      await Promise.resolve()
      return pool.send({ request })
    },
  }
  const cluster: ProducingCluster = { findBroker: () => Promise.resolve(broker as never) }
  producingFaster(cluster, () => NOW)
  await (
    await cluster.findBroker!(1 as never)
  ).produce!(ask(null) as never)
  expect(pool.asked).toEqual([request])
})

test('clusters and brokers of another shape are left as they are', async () => {
  expect(() => producingFaster(undefined, () => NOW)).not.toThrow()
  const bare: ProducingCluster = {}
  producingFaster(bare, () => NOW)
  expect(bare).toEqual({})
  const plain = {}
  const cluster: ProducingCluster = { findBroker: () => Promise.resolve(plain) }
  producingFaster(cluster, () => NOW)
  expect(await cluster.findBroker!(1 as never)).toBe(plain)
  expect(plain).toEqual({})
  const answer = Promise.resolve('answer')
  const poolless = { produce: () => answer }
  const strange: ProducingCluster = { findBroker: () => Promise.resolve(poolless) }
  producingFaster(strange, () => NOW)
  await strange.findBroker!(1 as never)
  await expect(poolless.produce()).resolves.toBe('answer')
})
