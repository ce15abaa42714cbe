import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeFetch } from '../../../../src/adapters/kafkajs/fetch-decoder'
import { fetchAnswer, type BatchSpec, type PartitionSpec, type RecordSpec } from './fetch-answer'

const kafkajs = createRequire(import.meta.url)('kafkajs/src/protocol/requests/fetch/v11/response') as {
  decode(answer: Buffer): Promise<unknown>
}

const bytes = fc.uint8Array({ maxLength: 40 }).map((one) => Buffer.from(one))
const header = fc.record({
  name: fc.oneof(
    fc.constantFrom('a', 'x-attempt', '__proto__', 'constructor', 'toString', 'ü', '', '0', null),
    fc.string({ maxLength: 5 }),
  ),
  value: fc.option(bytes),
})
const recordSpec: fc.Arbitrary<RecordSpec> = fc.record({
  attributes: fc.integer({ min: -128, max: 127 }),
  timestampDelta: fc.oneof(
    fc.bigInt({ min: 0n, max: 300n }),
    fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }),
    fc.constant(0n),
  ),
  offsetDelta: fc.oneof(fc.nat(300), fc.integer()),
  key: fc.option(bytes),
  value: fc.option(bytes),
  headers: fc.oneof(
    { weight: 5, arbitrary: fc.array(header, { maxLength: 4 }) },
    { weight: 1, arbitrary: fc.constant('none' as const) },
  ),
})
const batchSpec: fc.Arbitrary<BatchSpec> = fc.record({
  firstOffset: fc.oneof(fc.bigInt({ min: 0n, max: 10n ** 12n }), fc.bigInt({ min: 0n, max: 2n ** 63n - 1n })),
  firstTimestamp: fc.oneof(
    fc.constantFrom(-1n, 0n, 1_790_000_000_000n),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  ),
  maxTimestamp: fc.constantFrom(-1n, 0n, 1_790_000_000_500n),
  leaderEpoch: fc.integer(),
  attributes: fc.constantFrom(0, 0, 1, 8, 9, 16, 16 | 32, 24, 2, 5),
  producerId: fc.constantFrom(-1n, 17n, 2n ** 60n),
  records: fc.array(recordSpec, { maxLength: 6 }),
})
const partitionSpec: fc.Arbitrary<PartitionSpec> = fc.record({
  partition: fc.nat(20),
  batches: fc.array(batchSpec, { maxLength: 3 }),
  aborted: fc.oneof(
    fc.array(fc.record({ producerId: fc.constant(17n), firstOffset: fc.constant(3n) }), { maxLength: 2 }),
    fc.constant('none' as const),
  ),
  cut: fc.oneof(fc.constant(0), fc.nat(120)),
})

/** Vitest's own comparison asks for `constructor`, which may be a header here. */
function same(one: unknown, other: unknown): void {
  assert.deepStrictEqual(one, other)
}

async function kafkajsSays(bytesOfAnswer: Buffer): Promise<unknown> {
  try {
    return await kafkajs.decode(bytesOfAnswer)
  } catch (error) {
    return error
  }
}

test('property: what is decoded is what kafkajs makes of it', async () => {
  let ours = 0
  let runs = 0
  await fc.assert(
    fc.asyncProperty(fc.array(partitionSpec, { maxLength: 3 }), async (partitions) => {
      const encoded = fetchAnswer(partitions)
      const decoded = decodeFetch(encoded)
      runs++
      if (decoded === undefined) return
      ours++
      same(decoded, await kafkajs.decode(encoded))
    }),
    { numRuns: 1000 },
  )
  expect(ours, 'most is decoded here').toBeGreaterThan(runs / 10)
})

test('everything that is usual is decoded here, transactions and control records included', async () => {
  const usual = fc.record({
    firstOffset: fc.bigInt({ min: 0n, max: 10n ** 12n }),
    firstTimestamp: fc.constantFrom(-1n, 1_790_000_000_000n),
    maxTimestamp: fc.constant(1_790_000_000_500n),
    leaderEpoch: fc.nat(9),
    attributes: fc.constantFrom(0, 8, 16, 16 | 32, 24),
    producerId: fc.constantFrom(-1n, 17n),
    records: fc.array(
      recordSpec.map((one) => ({
        ...one,
        timestampDelta: one.timestampDelta % 1000n,
        offsetDelta: Math.abs(one.offsetDelta),
      })),
      { minLength: 1, maxLength: 6 },
    ),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(usual, { minLength: 1, maxLength: 3 }), async (batches) => {
      const encoded = fetchAnswer([{ partition: 3, batches, aborted: 'none', cut: 0 }])
      const decoded = decodeFetch(encoded)
      expect(decoded).toBeDefined()
      same(decoded, await kafkajs.decode(encoded))
    }),
  )
})

test('property: of an answer with wrong bytes in it, nothing is said that kafkajs would not have said', async () => {
  const wrong = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 3 })
  await fc.assert(
    fc.asyncProperty(fc.array(partitionSpec, { minLength: 1, maxLength: 2 }), wrong, async (partitions, changes) => {
      const encoded = fetchAnswer(partitions)
      // The counts of topics and partitions stay: kafkajs would make arrays of as many.
      const from = 26
      for (const [at, byte] of changes) if (encoded.length > from) encoded[from + (at % (encoded.length - from))] = byte
      const decoded = decodeFetch(encoded)
      if (decoded !== undefined) same(decoded, await kafkajsSays(encoded))
    }),
    { numRuns: 1000 },
  )
})

test('a compressed batch, or one with a count that cannot be, is left to kafkajs', async () => {
  const one = { attributes: 0, timestampDelta: 0n, offsetDelta: 0, key: null, value: null, headers: [] }
  const batchOf = (attributes: number): BatchSpec => ({
    firstOffset: 5n,
    firstTimestamp: 1n,
    maxTimestamp: 1n,
    leaderEpoch: 0,
    attributes,
    producerId: -1n,
    records: [one],
  })
  const made = (attributes: number): Buffer =>
    fetchAnswer([{ partition: 0, batches: [batchOf(0), batchOf(attributes)], aborted: [], cut: 0 }])
  expect(decodeFetch(made(0))).toBeDefined()
  for (const codec of [1, 2, 3, 4, 7]) expect(decodeFetch(made(codec))).toBeUndefined()
  const negative = made(0)
  // The count of the second batch: behind it stands its one record, of eight bytes with its length.
  negative.writeInt32BE(-2, negative.length - 12)
  expect(decodeFetch(negative)).toBeUndefined()
})

test('keys and values are views of what was read, not copies', async () => {
  const one = {
    attributes: 0,
    timestampDelta: 0n,
    offsetDelta: 0,
    key: Buffer.from('k'),
    value: Buffer.from('value'),
    headers: [],
  }
  const batches = [
    {
      firstOffset: 5n,
      firstTimestamp: 1n,
      maxTimestamp: 1n,
      leaderEpoch: 0,
      attributes: 0,
      producerId: -1n,
      records: [one],
    },
  ]
  const encoded = fetchAnswer([{ partition: 0, batches, aborted: [], cut: 0 }])
  const decoded = decodeFetch(encoded)
  const message = decoded?.responses[0]?.partitions[0]?.messages[0]
  expect([message?.offset, message?.value?.toString(), message?.value?.buffer]).toEqual(['5', 'value', encoded.buffer])
})
