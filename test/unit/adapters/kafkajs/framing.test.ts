import fc from 'fast-check'
import { Kafka, logLevel } from 'kafkajs'
import { execFile } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import { createServer, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { kafkajsDriver } from '../../../../src/adapters/kafkajs'
import {
  clusterOf,
  guardConnection,
  withGuardedConnections,
  type ConnectionLike,
} from '../../../../src/adapters/kafkajs/framing'
import type { KafkaJsLike } from '../../../../src/adapters/kafkajs/kafkajs-like'
import { silentLogger } from '../../../../src/ports'
import { turn } from '../../../helpers/test-clock'
import { hold } from '../../consume/given'
import { fetchAnswer } from './fetch-answer'

/** kafkajs's own connection, on sockets that the test writes into. */
const require = createRequire(import.meta.url)
const Connection = require('kafkajs/src/network/connection') as new (options: object) => RealConnection
const createFetchManager = require('kafkajs/src/consumer/fetchManager')
const Encoder = require('kafkajs/src/protocol/encoder') as new () => object
/** Where it is taken for the length of an answer, it holds less than an answer must have. */
const NO_LENGTH = Buffer.from([0, 0, 0, 2])

interface RealConnection extends ConnectionLike {
  connect(): Promise<unknown>
  disconnect(): Promise<unknown>
  send(protocol: object): Promise<Buffer>
}

class FakeSocket extends EventEmitter {
  destroyedWith: Error | undefined
  write(): void {}
  end(): void {}
  unref(): void {}
  destroy(error: Error): void {
    this.destroyedWith = error
    process.nextTick(() => this.emit('error', error))
  }
}

const quiet = { debug() {}, info() {}, warn() {}, error() {}, namespace: () => quiet }

function setUp({ guarded }: { guarded: boolean }): { connection: RealConnection; sockets: FakeSocket[] } {
  const sockets: FakeSocket[] = []
  const connection = new Connection({
    host: 'broker',
    port: 9092,
    logger: quiet,
    requestTimeout: 60_000,
    connectionTimeout: 60_000,
    socketFactory: ({ onConnect }: { onConnect: () => void }) => {
      const socket = new FakeSocket()
      sockets.push(socket)
      process.nextTick(onConnect)
      return socket
    },
  })
  if (guarded) guardConnection(connection)
  return { connection, sockets }
}

function ask(connection: RealConnection): Promise<Buffer> {
  return connection.send({
    request: { apiKey: 3, apiVersion: 1, apiName: 'Metadata', encode: async () => new Encoder() },
    response: {
      decode: async (payload: Buffer) => ({ payload }),
      parse: async (one: { payload: Buffer }) => one.payload,
    },
  })
}

/** Requests are written in a later turn. */
const turns = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
}

function answer(correlationId: number, payload: Buffer): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeInt32BE(4 + payload.length, 0)
  bytes.writeInt32BE(correlationId, 4)
  return Buffer.concat([bytes, payload])
}

/** One request, of whose answer so many bytes come before the connection ends; and the connection is made again. */
async function cutAfter(bytes: number, connection: RealConnection, sockets: FakeSocket[]): Promise<void> {
  await connection.connect()
  const first = ask(connection)
  first.catch(() => undefined)
  await turns()
  sockets[0]!.emit('data', answer(0, Buffer.alloc(40, 0xff)).subarray(0, bytes))
  sockets[0]!.emit('end')
  await expect(first).rejects.toThrow('Closed connection')
  await turns()
  await connection.connect()
}

describe('a connection that was cut in the middle of an answer', () => {
  test('kafkajs: the next one throws out of a socket event, and answers nothing', async () => {
    const { connection, sockets } = setUp({ guarded: false })
    await cutAfter(12, connection, sockets)
    let answered = false
    void ask(connection).then(
      () => (answered = true),
      () => undefined,
    )
    await turns()
    const bytes = answer(1, Buffer.alloc(60, NO_LENGTH))
    expect(() => sockets[1]!.emit('data', bytes)).toThrow(RangeError)
    await turns()
    expect(answered).toBe(false)
    sockets[1]!.emit('end')
    await turns()
  })

  test('kafkajs: its process ends', async () => {
    const broker = `
      const { createServer } = require('node:net')
      const { Kafka, logLevel } = require('kafkajs')
      let connections = 0
      createServer((socket) => {
        const first = ++connections === 1
        socket.on('error', () => {}).on('data', () => {
          if (first) socket.end(Buffer.from([0, 0, 0, 48, 0, 0, 0, 0, 1, 1, 1, 1]))
          else socket.write(Buffer.alloc(68, Buffer.from([0, 0, 0, 2])))
        })
      }).listen(0, '127.0.0.1', function () {
        const brokers = ['127.0.0.1:' + this.address().port]
        new Kafka({ brokers, logLevel: logLevel.NOTHING }).admin().connect().catch(() => {})
        setTimeout(() => process.exit(0), 20000)
      })`
    const out = await new Promise<string>((resolve) => {
      execFile(process.execPath, ['-e', broker], (error, _, stderr) => resolve(error ? stderr : 'survived'))
    })
    expect(out).toContain('ERR_BUFFER_OUT_OF_BOUNDS')
    expect(out).toMatch(/at Connection\.processData .*\n *at Socket\.onData/)
  }, 60_000)

  test('guarded: the next one answers', async () => {
    const { connection, sockets } = setUp({ guarded: true })
    await cutAfter(12, connection, sockets)
    const second = ask(connection)
    await turns()
    sockets[1]!.emit('data', answer(1, Buffer.from('whole')))
    expect(String(await second)).toBe('whole')
    await connection.disconnect()
  })

  test('guarded: cut anywhere, and read in any pieces', async () => {
    const run = async (cut: number, sizes: readonly number[], payloads: readonly Uint8Array[]): Promise<void> => {
      const { connection, sockets } = setUp({ guarded: true })
      await cutAfter(cut, connection, sockets)
      const asked = payloads.map(() => ask(connection))
      await turns()
      const stream = Buffer.concat(payloads.map((payload, i) => answer(i + 1, Buffer.from(payload))))
      for (let at = 0, i = 0; at < stream.length; i++) {
        const size = sizes[i % sizes.length]!
        sockets[1]!.emit('data', stream.subarray(at, at + size))
        at += size
      }
      const answers = await Promise.all(asked)
      expect(answers.map((one) => one.toString('hex'))).toEqual(payloads.map((one) => Buffer.from(one).toString('hex')))
      await connection.disconnect()
    }
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 47 }),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 5 }),
        fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 4 }),
        run,
      ),
      { numRuns: 40 },
    )
  })

  test('guarded: bytes that still come on the old one do not get between those of the new one', async () => {
    const { connection, sockets } = setUp({ guarded: true })
    await cutAfter(12, connection, sockets)
    const second = ask(connection)
    await turns()
    const bytes = answer(1, Buffer.from('whole'))
    sockets[1]!.emit('data', bytes.subarray(0, 6))
    sockets[0]!.emit('data', Buffer.alloc(36, 0xff))
    sockets[1]!.emit('data', bytes.subarray(6))
    expect(String(await second)).toBe('whole')
    await connection.disconnect()
  })
})

test('guarded: bytes that cannot be read end their connection, and nothing is thrown', async () => {
  const { connection, sockets } = setUp({ guarded: true })
  await connection.connect()
  const asked = ask(connection)
  asked.catch(() => undefined)
  await turns()
  sockets[0]!.emit('data', Buffer.alloc(8, NO_LENGTH))
  expect(sockets[0]!.destroyedWith).toBeInstanceOf(RangeError)
  await expect(asked).rejects.toThrow('Connection error')
})

describe('the client', () => {
  const config = { brokers: ['broker:9092'], logLevel: logLevel.NOTHING }

  test("of kafkajs: another object, and the user's stays as it is", () => {
    const kafka = new Kafka(config)
    const before = Reflect.ownKeys(kafka).map((key) => [key, Reflect.get(kafka, key) as unknown])
    const ours = withGuardedConnections(kafka)
    expect(ours).not.toBe(kafka)
    expect(ours).toBeInstanceOf(Kafka)
    expect(Reflect.ownKeys(kafka).map((key) => [key, Reflect.get(kafka, key) as unknown])).toEqual(before)
  })

  test('of a class that only sets kafkajs up: guarded too', () => {
    class Ours extends Kafka {
      constructor() {
        super(config)
      }
    }
    const kafka = new Ours()
    expect(withGuardedConnections(kafka)).not.toBe(kafka)
  })

  test.each([
    ['that makes its consumers in its own way', Object.assign(new Kafka(config), { consumer: () => undefined })],
    [
      'of a class that makes its producers in its own way',
      new (class extends Kafka {
        readonly #own = 1
        override producer(...args: Parameters<Kafka['producer']>): ReturnType<Kafka['producer']> {
          return this.#own === 1 ? super.producer(...args) : super.producer()
        }
      })(config),
    ],
    ['that is not of kafkajs', { consumer() {}, producer() {}, admin() {} }],
  ])('%s: as it was given', (_, kafka) => {
    expect(withGuardedConnections(kafka as unknown as KafkaJsLike)).toBe(kafka)
  })

  const warnings = (...kafkas: unknown[]): unknown[][] => {
    const told: unknown[][] = []
    const logger = { ...silentLogger, warn: (...args: unknown[]) => told.push(args) }
    for (const kafka of kafkas) kafkajsDriver(kafka as KafkaJsLike, logger)
    return told
  }

  test('with a method of its own: a warning that names it, once for each client', () => {
    const own = (): object => {
      const kafka = new Kafka(config)
      return Object.assign(kafka, { producer: () => new Kafka(config).producer(), admin: () => kafka.admin() })
    }
    const [one, other] = [own(), own()]
    const told = warnings(one, one, other)
    expect(told).toHaveLength(2)
    expect(told[0]).toEqual([
      expect.stringContaining('producer(), admin() of its own'),
      { methods: ['producer', 'admin'] },
    ])
  })

  test('as kafkajs makes it, or not of kafkajs at all: no warning', () => {
    expect(warnings(new Kafka(config), { consumer() {}, producer() {}, admin() {} })).toEqual([])
  })
})

interface InnerCluster {
  connect(): Promise<void>
  readonly brokerPool: { connectionPoolBuilder: { build(): Promise<{ pool: { connect(): Promise<unknown> }[] }> } }
  disconnect(): Promise<void>
}

describe('a client that is disconnected, of connections that kafkajs has forgotten', () => {
  /** A broker that answers nothing, a client of it, and every cluster that the client has made. */
  async function silent({ guarded }: { guarded: boolean }): Promise<{
    kafka: KafkaJsLike
    clusters: InnerCluster[]
    cluster: () => InnerCluster
    open: Set<Socket>
    until: (enough: () => boolean) => Promise<void>
  }> {
    const open = new Set<Socket>()
    let changed = (): void => undefined
    const server = createServer((socket) => {
      open.add(socket)
      changed()
      socket
        .on('error', () => undefined)
        .on('close', () => {
          open.delete(socket)
          changed()
        })
      socket.resume()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      for (const socket of open) socket.destroy()
      server.close()
    })
    const { port } = server.address() as { port: number }
    const plain = new Kafka({ brokers: [`127.0.0.1:${port}`], logLevel: logLevel.NOTHING, retry: { retries: 0 } })
    const key = Object.getOwnPropertySymbols(plain).find(({ description }) => description?.includes('createCluster'))!
    const make = (plain as unknown as Record<symbol, (options: object) => InnerCluster>)[key]!
    const clusters: InnerCluster[] = []
    Object.assign(plain, {
      [key]: (options: object) => {
        clusters.push(make(options))
        return clusters.at(-1)
      },
    })
    const kafka = guarded ? withGuardedConnections(plain) : plain
    const until = (enough: () => boolean): Promise<void> =>
      new Promise((resolve) => {
        changed = () => enough() && resolve()
        changed()
      })
    const cluster = (): InnerCluster => (kafka as unknown as Record<symbol, typeof make>)[key]!({})
    return { kafka, clusters, cluster, open, until }
  }

  async function left(options: { guarded: boolean }): Promise<{
    open: Set<Socket>
    ended: () => Promise<void>
    connectOne: () => Promise<unknown>
  }> {
    const { open, until, ...made } = await silent(options)
    const cluster = made.cluster()
    const connectOne = async (): Promise<unknown> => {
      const { pool } = await cluster.brokerPool.connectionPoolBuilder.build()
      return pool[0]!.connect()
    }
    await connectOne()
    await connectOne()
    await until(() => open.size === 2)
    await cluster.disconnect()
    return { open, connectOne, ended: () => until(() => open.size === 0) }
  }

  test('kafkajs: they stay', async () => {
    const { open } = await left({ guarded: false })
    await turns()
    expect(open.size).toBe(2)
  })

  test('guarded: they end, and what still tries to reach a broker gives up', async () => {
    const { open, ended, connectOne } = await left({ guarded: true })
    await ended()
    await expect(connectOne()).rejects.toThrow('disconnected')
    await ended()
    expect(open.size).toBe(0)
  })

  test('kafkajs: one that is connected twice at once keeps the first of its sockets', async () => {
    const { cluster, open, until } = await silent({ guarded: false })
    await twice(cluster())
    await until(() => open.size === 1)
  })

  test('guarded: one that is connected twice at once keeps none', async () => {
    const { cluster, open, until } = await silent({ guarded: true })
    await twice(cluster())
    await until(() => open.size === 0)
  })

  /** As two requests do that find it unconnected. */
  async function twice(cluster: InnerCluster): Promise<void> {
    const { pool } = await cluster.brokerPool.connectionPoolBuilder.build()
    const connection = pool[0]! as unknown as RealConnection
    await Promise.all([connection.connect(), connection.connect()])
    await connection.disconnect()
    await cluster.disconnect()
  }

  // What a producer's next try does when it finds its cluster without a connection (`sendMessages`).
  test.each(['producer', 'admin', 'consumer'] as const)('kafkajs: its own tries connect a %s again', async (name) => {
    const { kafka, clusters, open, until } = await silent({ guarded: false })
    await kafka[name]({ groupId: 'g' }).disconnect()
    const again = clusters[0]!.connect().catch(() => undefined)
    await until(() => open.size === 1)
    await clusters[0]!.disconnect()
    for (const socket of open) socket.destroy()
    await again
  })

  test.each(['producer', 'admin', 'consumer'] as const)('guarded: only its user connects a %s again', async (name) => {
    const { kafka, clusters, open, until } = await silent({ guarded: true })
    const client = kafka[name]({ groupId: 'g' })
    await client.disconnect()
    await expect(clusters[0]!.connect()).rejects.toThrow('the client was disconnected')
    await expect(clusters[0]!.brokerPool.connectionPoolBuilder.build()).rejects.toMatchObject({ retriable: false })
    const again = client.connect().catch(() => undefined)
    await until(() => open.size === 1)
    await client.disconnect()
    await until(() => open.size === 0)
    await again
  })
})

describe('answers to fetches', () => {
  interface Protocol {
    request: object
    response: { decode(answer: Buffer): Promise<unknown>; parse(decoded: unknown): Promise<unknown> }
  }
  const fetchProtocol = require('kafkajs/src/protocol/requests/fetch') as {
    protocol(of: { version: number }): (request: object) => Protocol
  }
  const one = { attributes: 0, timestampDelta: 0n, offsetDelta: 0, key: null, value: Buffer.from('v'), headers: [] }
  const batch = {
    firstOffset: 5n,
    firstTimestamp: 1n,
    maxTimestamp: 1n,
    leaderEpoch: 0,
    producerId: -1n,
    records: [one],
  }
  const answerWith = (attributes: number): Buffer =>
    fetchAnswer([{ partition: 0, batches: [{ ...batch, attributes }], aborted: [], cut: 0 }])

  async function fetched(version: number, payload: Buffer) {
    const { connection, sockets } = setUp({ guarded: true })
    await connection.connect()
    const fetch = fetchProtocol.protocol({ version })({ maxWaitTime: 1, minBytes: 1, maxBytes: 1, topics: [] })
    let asked = 0
    const response = {
      ...fetch.response,
      decode(bytes: Buffer) {
        asked++
        return fetch.response.decode(bytes)
      },
    }
    const result = connection.send({ ...fetch, response }).then(
      (data) => ({ data }),
      (error: unknown) => ({ error }),
    )
    await turns()
    sockets[0]!.emit('data', answer(0, payload))
    const said = await result
    await connection.disconnect()
    return { ...said, kafkajsAsked: asked }
  }

  test('are decoded here, to what kafkajs would have made of them', async () => {
    const { data, kafkajsAsked } = (await fetched(11, answerWith(0))) as { data?: unknown; kafkajsAsked: number }
    const { response } = fetchProtocol.protocol({ version: 11 })({ topics: [] })
    expect([data, kafkajsAsked]).toEqual([await response.parse(await response.decode(answerWith(0))), 0])
  })

  test('that are not in order, or of another version, are decoded by kafkajs, whose errors stay as they are', async () => {
    expect(await fetched(11, answerWith(4))).toMatchObject({
      error: { name: 'KafkaJSNotImplemented', message: 'ZSTD compression not implemented' },
      kafkajsAsked: 1,
    })
    // Without the field that version 11 has brought, as far as an answer of no partition shows it.
    expect(await fetched(10, fetchAnswer([]))).toMatchObject({ kafkajsAsked: 1, data: { errorCode: 0 } })
  })
})

describe('a consumer that is disconnected while it begins its fetches anew', () => {
  /** kafkajs's own fetches, over the nodes of a client's cluster, as its runner makes them. */
  async function disconnectedMeanwhile(kafka: KafkaJsLike): Promise<{ end: string; spins: number }> {
    const consumer = kafka.consumer({ groupId: 'g' })
    const cluster = clusterOf(consumer) as { brokerPool: { brokers: object } } | undefined
    let nodes = ['1', '2']
    const own = { getNodeIds: () => nodes }
    if (cluster) cluster.brokerPool.brokers = { 1: brokerStub, 2: brokerStub }
    const getNodeIds = (): string[] => ((cluster ?? own) as typeof own).getNodeIds()
    let running = true
    let spins = 0
    const held = hold<void>()
    const fetches = createFetchManager({
      logger: quiet,
      getNodeIds,
      handler: async () => undefined,
      async fetch(node: string) {
        if (!running) {
          if (++spins > 1_000) throw new Error('it spins')
          return []
        }
        if (node === '2') await held.promise
        else await turn()
        return []
      },
    })
    const end = (fetches.start() as Promise<void>).then(
      () => 'ended',
      (error: Error) => error.message,
    )
    await turn()
    // A node goes: one fetch finds out, and the fetches are to begin anew once the other is back.
    nodes = ['1']
    if (cluster) cluster.brokerPool.brokers = { 1: brokerStub }
    for (let i = 0; i < 5; i++) await turn()
    running = false
    const left = Promise.all([fetches.stop(), consumer.disconnect()])
    held.resolve()
    await left
    return { end: await end, spins }
  }
  const brokerStub = { isConnected: () => false, disconnect: async () => undefined }

  test('kafkajs fetches without end, and nothing else happens', async () => {
    const kafka = new Kafka({ brokers: ['127.0.0.1:1'], logLevel: logLevel.NOTHING }) as unknown as KafkaJsLike
    expect(await disconnectedMeanwhile(kafka)).toEqual({ end: 'it spins', spins: 1_001 })
  })

  test('ours ends', async () => {
    const kafka = new Kafka({ brokers: ['127.0.0.1:1'], logLevel: logLevel.NOTHING }) as unknown as KafkaJsLike
    expect(await disconnectedMeanwhile(withGuardedConnections(kafka))).toEqual({ end: 'ended', spins: 0 })
  })

  test('one that runs in spite of it is told that there is no node', async () => {
    const kafka = new Kafka({ brokers: ['127.0.0.1:1'], logLevel: logLevel.NOTHING }) as unknown as KafkaJsLike
    const consumer = withGuardedConnections(kafka).consumer({ groupId: 'g' })
    const cluster = clusterOf(consumer) as { getNodeIds(): string[]; brokerPool: { brokers: object } }
    cluster.brokerPool.brokers = { 1: brokerStub }
    expect(cluster.getNodeIds()).toEqual(['1'])
    await consumer.disconnect()
    const fetches = createFetchManager({ logger: quiet, getNodeIds: () => cluster.getNodeIds(), fetch: async () => [] })
    await fetches.start()
    await expect(fetches.start()).rejects.toMatchObject({ name: 'KafkaJSNoBrokerAvailableError' })
  })
})
