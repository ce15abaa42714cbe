import fc from 'fast-check'
import { createRequire } from 'node:module'
import { expect, test, vi } from 'vitest'
import { crc32c } from '../../../../src/adapters/kafkajs/crc32c'
import { encodeProduce, PRODUCE_VERSIONS, type ProduceRequest } from '../../../../src/adapters/kafkajs/produce-encoder'

const require = createRequire(import.meta.url)
type Make = (request: ProduceRequest) => { encode(): Promise<{ buffer: Buffer }> }
const { protocol } = require('kafkajs/src/protocol/requests/produce') as {
  protocol(options: { version: number }): (request: ProduceRequest) => { request: ReturnType<Make> }
}

const NOW = 1_790_000_000_123

/** What kafkajs writes at this moment. */
async function kafkajs(request: ProduceRequest, version: number): Promise<Buffer> {
  vi.useFakeTimers({ now: NOW, toFake: ['Date'] })
  try {
    return (await protocol({ version })(request).request.encode()).buffer
  } finally {
    vi.useRealTimers()
  }
}

const bytes = fc
  .oneof(
    { weight: 30, arbitrary: fc.uint8Array({ maxLength: 70 }) },
    // The lengths at which one more byte is needed to tell them.
    { weight: 1, arbitrary: fc.constantFrom(63, 64, 8150, 8191, 8192).map((length) => new Uint8Array(length).fill(7)) },
  )
  .map((one) => Buffer.from(one))
const name = fc.oneof(
  fc.constantFrom('x-attempt', 'x-due-at', '__proto__', 'constructor', 'toString', 'ü', '', '0', '7', '\ud800'),
  fc.string({ maxLength: 70, unit: 'binary' }),
)
/** As `toKafkaHeaders` makes them: a repeated name has an array. */
const headers = fc
  .array(fc.tuple(name, fc.oneof(bytes, fc.array(bytes, { maxLength: 3 }))), { maxLength: 6 })
  .map((list) => {
    const object = Object.create(null) as Record<string, unknown>
    for (const [key, value] of list) object[key] = value
    return object
  })
const message = fc.record(
  { key: fc.option(bytes), value: fc.option(bytes), headers, partition: fc.nat(9) },
  { requiredKeys: ['value'] },
)
const partition = (messages: typeof message) =>
  fc.record(
    {
      partition: fc.nat(2 ** 31 - 1),
      messages: fc.oneof(
        { weight: 15, arbitrary: fc.array(messages, { minLength: 1, maxLength: 4 }) },
        { weight: 1, arbitrary: messages.map((one) => Array.from({ length: 130 }, () => one)) },
      ),
      firstSequence: fc.nat(2 ** 31 - 1),
    },
    { requiredKeys: ['partition', 'messages'] },
  )
const requestOf = (messages: typeof message): fc.Arbitrary<ProduceRequest> =>
  fc.record(
    {
      transactionalId: fc.option(fc.constantFrom('billing/orders/3', 'ü', ''), { nil: null }),
      acks: fc.constantFrom(-1, 1),
      timeout: fc.nat(2 ** 31 - 1),
      producerId: fc.constantFrom(-1, '-1', '17', '9223372036854775807'),
      producerEpoch: fc.integer({ min: 0, max: 32_767 }),
      compression: fc.constant(0),
      topicData: fc.array(
        fc.record({
          topic: fc.constantFrom('orders', 'orders.retry.1m', 'ü'),
          partitions: fc.array(partition(messages), { maxLength: 2 }),
        }),
        { maxLength: 2 },
      ),
    },
    { requiredKeys: ['acks', 'timeout', 'topicData'] },
  )

test('it writes the same bytes as kafkajs', async () => {
  const version = fc.constantFrom(...PRODUCE_VERSIONS)
  await fc.assert(
    fc.asyncProperty(requestOf(message), version, async (request, one) => {
      const ours = encodeProduce(request, NOW)
      expect(ours).toBeDefined()
      expect(ours!.equals(await kafkajs(request, one))).toBe(true)
    }),
    { numRuns: 150 },
  )
})

const value = Buffer.from('value')
const alone = (one: object, rest: object = {}): ProduceRequest => ({
  acks: -1,
  timeout: 30_000,
  topicData: [{ topic: 'orders', partitions: [{ partition: 0, messages: [one] }] }],
  ...rest,
})

test('a request that grows beyond its page', async () => {
  const large = alone({ value: Buffer.alloc(3_000_000, 'v'), headers: { a: Buffer.alloc(2_500_000, 'h') } })
  for (const request of [alone({ value }), large, alone({ value })]) {
    expect(encodeProduce(request, NOW)!.equals(await kafkajs(request, 7))).toBe(true)
  }
})

test('more names of headers than are kept', async () => {
  for (let i = 0; i < 300; i++) {
    const request = alone({ value, headers: { [`name-${i}`]: value, 'x-attempt': value } })
    expect(encodeProduce(request, NOW)!.equals(await kafkajs(request, 7))).toBe(true)
  }
})

test.each<[string, ProduceRequest]>([
  ['compressed', alone({ value }, { compression: 1 })],
  ['a timestamp', alone({ value, timestamp: '1790000000000' })],
  ['text as a value', alone({ value: 'text' })],
  ['text as a key', alone({ key: 'text', value })],
  ['text as a header', alone({ value, headers: { a: 'text' } })],
  ['text in a list of headers', alone({ value, headers: { a: [value, 'text'] } })],
  ['a header of null', alone({ value, headers: { a: null } })],
  ['a header that is undefined', alone({ value, headers: { a: undefined } })],
  ['headers of null', alone({ value, headers: null })],
  ['no records', { ...alone({}), topicData: [{ topic: 'orders', partitions: [{ partition: 0, messages: [] }] }] }],
  ['a producer id that is none', alone({ value }, { producerId: 'one' })],
  [
    'a partition that is none',
    { ...alone({}), topicData: [{ topic: 'o', partitions: [{ partition: 2 ** 31, messages: [{ value }] }] }] },
  ],
  ['a topic that is too long', { ...alone({}), topicData: [{ topic: 'o'.repeat(40_000), partitions: [] }] }],
])('kafkajs is left %s', (_, request) => {
  expect(encodeProduce(request, NOW)).toBeUndefined()
})

test('the checksum is the one that is published for this text', () => {
  expect(crc32c(Buffer.from('__123456789__'), 2, 11)).toBe(0xe3069283)
})
