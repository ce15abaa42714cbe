import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readDeadLetter } from '../../../src/dlq/dead-letter'
import { createResilientConsumer, silentLogger } from '../../../src/index'
import type { Header, Rec } from '../../../src/record'
import { createFakeKafka } from '../../../src/testing'

const bytes = (text: string): Buffer => Buffer.from(text)
const own: Header[] = [
  ['event', bytes('e-1')],
  ['binary', Buffer.from([0, 255])],
  ['event', null],
]

function rec(headers: readonly Header[], value: Buffer | null = bytes('{"order":7}')): Rec {
  return {
    topic: 'orders.dlq',
    partition: 2,
    offset: 41n,
    timestamp: 1_700_000_000_000,
    key: bytes('k'),
    value,
    headers,
  }
}

function texts(prefix: string, fields: Record<string, string>): Header[] {
  return Object.entries(fields).map(([name, value]) => [`${prefix}${name}`, bytes(value)])
}

function int(value: number): Buffer {
  const buffer = Buffer.alloc(4)
  buffer.writeInt32BE(value)
  return buffer
}

function long(value: bigint): Buffer {
  const buffer = Buffer.alloc(8)
  buffer.writeBigInt64BE(value)
  return buffer
}

describe('a dead letter of ours', () => {
  it('is read with its place, its story, and the bytes that it had', async () => {
    const kafka = createFakeKafka({ topics: { orders: 3 } })
    const consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: ['1m'],
      release: 'v7',
      topicSetup: 'create',
      logger: silentLogger,
      handler() {
        throw Object.assign(new Error('card 17 declined'), { name: 'CardError', status: 503 })
      },
    })
    await consumer.start()
    const producer = kafka.producer()
    await producer.connect()
    await producer.send({
      topic: 'orders',
      messages: [{ partition: 1, key: 'k', value: '{"order":7}', headers: { event: 'e-1', twice: ['a', 'b'] } }],
    })
    await kafka.clock.advance('2m')
    await consumer.stop()
    const [found] = kafka.records('orders.dlq')
    const read = readDeadLetter({ ...found!, topic: 'orders.dlq' })
    expect(read).toMatchObject({
      id: `orders.dlq:1:0`,
      format: 'retryline',
      group: 'billing',
      release: 'v7',
      errorClass: 'CardError',
      error: 'card 17 declined',
      reason: 'exhausted',
      attempt: 2,
      original: { topic: 'orders', partition: 1, offset: 0n, key: bytes('k'), value: bytes('{"order":7}') },
    })
    expect(read.stack).toContain('card 17 declined')
    expect(read.history.map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(read.original.headers).toEqual([
      ['event', bytes('e-1')],
      ['twice', bytes('a')],
      ['twice', bytes('b')],
    ])
  })
})

describe("other people's dead letters", () => {
  it('Spring: numbers as bytes, the first origin and the newest exception', () => {
    const read = readDeadLetter(
      rec([
        ...own,
        ['kafka_dlt-original-topic', bytes('orders')],
        ['kafka_dlt-original-partition', int(4)],
        ['kafka_dlt-original-offset', long(9_007_199_254_740_993n)],
        ['kafka_dlt-original-timestamp', long(1_699_999_999_999n)],
        ...texts('kafka_dlt-', { 'original-consumer-group': 'billing', 'exception-fqcn': 'a.Outer' }),
        ['kafka_dlt-original-topic', bytes('orders-retry-0')],
        ...texts('kafka_dlt-', { 'exception-cause-fqcn': 'a.Old', 'exception-message': 'old' }),
        ...texts('kafka_dlt-', { 'exception-cause-fqcn': 'a.New', 'exception-message': 'new' }),
        ['retry_topic-attempts', int(3)],
      ]),
    )
    expect(read).toMatchObject({ format: 'spring', group: 'billing', errorClass: 'a.New', error: 'new', attempt: 3 })
    expect(read.original).toEqual({
      topic: 'orders',
      partition: 4,
      offset: 9_007_199_254_740_993n,
      timestamp: 1_699_999_999_999,
      key: bytes('k'),
      value: bytes('{"order":7}'),
      headers: own,
    })
  })

  it('Kafka Connect', () => {
    const told = {
      topic: 'orders',
      partition: '3',
      offset: '12',
      'connector.name': 'sink',
      'exception.class.name': 'DataException',
      'exception.message': 'no schema',
      'exception.stacktrace': 'DataException: no schema\n\tat a.B.c(B.java:1)',
    }
    expect(readDeadLetter(rec([...texts('__connect.errors.', told), ...own]))).toMatchObject({
      format: 'connect',
      group: 'sink',
      errorClass: 'DataException',
      error: 'no schema',
      original: { topic: 'orders', partition: 3, offset: 12n, headers: own },
    })
  })

  it('a share group', () => {
    const told = {
      topic: 'orders',
      partition: '3',
      offset: '12',
      group: 'g',
      'delivery.count': '5',
      message: 'rejected',
    }
    expect(readDeadLetter(rec([...own, ...texts('__dlq.errors.', told)]))).toMatchObject({
      format: 'share-group',
      group: 'g',
      error: 'rejected',
      attempt: 5,
      original: { topic: 'orders', partition: 3, offset: 12n, headers: own },
    })
  })

  it('SmallRye', () => {
    const told = { topic: 'orders', partition: '0', offset: '8', reason: 'boom', 'exception-class-name': 'a.Boom' }
    const headers = [...own, ...texts('dead-letter-', told)]
    expect(readDeadLetter(rec(headers))).toMatchObject({
      format: 'smallrye',
      errorClass: 'a.Boom',
      error: 'boom',
      original: { topic: 'orders', partition: 0, offset: 8n, headers: own },
    })
  })

  it('kafkajs-async-retry, which counts the attempts before the last', () => {
    const told = JSON.stringify({ ttl: 1, top: 'orders', att: 2 })
    expect(readDeadLetter(rec([...own, ['asyncRetry', bytes(told)]]))).toMatchObject({
      format: 'kafkajs-async-retry',
      attempt: 3,
      error: undefined,
      original: { topic: 'orders', partition: undefined, headers: own },
    })
  })

  it('an envelope in the value: the payload is what stood there, byte for byte', () => {
    const payload = '{ "id": 12345678901234567890, "b":1.50,"a" :[1,{"payload":2}] }'
    const body = `{"originalTopic":"orders","error":{"name":"E","message":"m"},"payload": ${payload} ,"attemptCount":4}`
    expect(readDeadLetter(rec(own, bytes(body)))).toMatchObject({
      format: 'json-body',
      errorClass: 'E',
      error: 'm',
      attempt: 4,
      original: { topic: 'orders', value: bytes(payload), headers: own },
    })
    const text = readDeadLetter(rec(own, bytes('{"originalTopic":"orders","payload":"grüß","error":"m"}')))
    expect(text).toMatchObject({ error: 'm', original: { value: bytes('grüß') } })
    const none = readDeadLetter(rec(own, bytes('{"originalTopic":"orders","payload":null}')))
    expect(none.original.value).toBeNull()
  })

  it('an envelope whose payload is no text is left as it is, since its bytes could not be given back', () => {
    const body = Buffer.concat([bytes('{"originalTopic":"orders","payload":"'), Buffer.from([0xff]), bytes('"}')])
    expect(readDeadLetter(rec(own, body))).toMatchObject({ format: 'unknown', original: { value: body } })
  })

  it('of a format that nobody knows, everything is the original', () => {
    const headers: Header[] = [...own, ['x-attempt', bytes('3')]]
    expect(readDeadLetter(rec(headers))).toMatchObject({
      id: 'orders.dlq:2:41',
      format: 'unknown',
      group: undefined,
      attempt: undefined,
      original: { topic: undefined, value: bytes('{"order":7}'), headers },
    })
  })

  it('numbers that cannot be are not there', () => {
    const read = readDeadLetter(
      rec([
        ['kafka_dlt-original-topic', bytes('orders')],
        ['kafka_dlt-original-partition', int(-1)],
        ['kafka_dlt-original-offset', bytes('12')],
      ]),
    )
    expect(read.original).toMatchObject({ partition: undefined, offset: undefined, timestamp: undefined })
    const told = { topic: 'orders', partition: '2147483648', offset: '9223372036854775808' }
    expect(readDeadLetter(rec(texts('__connect.errors.', told))).original).toMatchObject({
      partition: undefined,
      offset: undefined,
    })
  })

  const names = [
    'x-failure-reason',
    'x-null-headers',
    'kafka_dlt-original-topic',
    'kafka_dlt-original-offset',
    '__connect.errors.topic',
    '__dlq.errors.topic',
    'dead-letter-topic',
    'asyncRetry',
    '__proto__',
  ]
  const anyBytes = fc.uint8Array({ maxLength: 12 }).map((list) => Buffer.from(list))
  const anyHeader = fc.tuple(fc.constantFrom(...names), fc.option(anyBytes, { nil: null }))

  it('no bytes make it throw, and key and value of what is not a JSON body are kept', () => {
    fc.assert(
      fc.property(fc.array(anyHeader), fc.option(anyBytes, { nil: null }), (headers, value) => {
        const read = readDeadLetter(rec(headers, value))
        expect(read.original.key).toEqual(bytes('k'))
        expect(read.original.value).toEqual(value)
      }),
    )
  })

  it('no JSON makes it throw', () => {
    fc.assert(
      fc.property(fc.json(), fc.json(), (payload, error) => {
        const body = `{"originalTopic":"t","payload":${payload},"error":${error},"attemptCount":${error}}`
        const { format, original } = readDeadLetter(rec([], bytes(body)))
        expect(format).toBe('json-body')
        const parsed: unknown = JSON.parse(payload)
        if (parsed === null) expect(original.value).toBeNull()
        else
          expect(original.value!.toString()).toBe(
            typeof parsed === 'string' ? Buffer.from(parsed).toString() : payload.trim(),
          )
      }),
    )
  })
})
