import { createRequire } from 'node:module'
import fc from 'fast-check'
import { AssignerProtocol, PartitionAssigners } from 'kafkajs'
import { describe, expect, it } from 'vitest'
import { createFakeKafka } from '../../../src/testing'
import { PROTOCOL_ERRORS } from '../../../src/testing/error-codes'
import { sizeOfBatch } from '../../../src/testing/log'
import {
  decodeAssignment,
  decodeMetadata,
  encodeAssignment,
  encodeMetadata,
} from '../../../src/testing/member-protocol'
import { murmur2 } from '../../../src/testing/partitioner'

/** kafkajs's own insides, as the judge of ours. */
const inside = createRequire(import.meta.url)
const { MemberMetadata, MemberAssignment } = AssignerProtocol

describe('bytes that members exchange', () => {
  const topics = fc.array(fc.string({ unit: 'grapheme', minLength: 1 }), { maxLength: 4 })
  const data = fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes))

  it('are those of kafkajs: subscriptions', () => {
    fc.assert(
      fc.property(fc.nat(9), topics, data, (version, names, userData) => {
        const bytes = encodeMetadata(names, version, userData)
        expect(bytes).toEqual(MemberMetadata.encode({ version, topics: names, userData }))
        expect(decodeMetadata(bytes)).toEqual(MemberMetadata.decode(bytes))
      }),
    )
  })

  it('are those of kafkajs: assignments', () => {
    // kafkajs reads a topic named __proto__ into the prototype; nobody has one.
    const name = fc.string({ minLength: 1 }).filter((one) => one !== '__proto__')
    const shares = fc.dictionary(name, fc.array(fc.nat(2 ** 31 - 1), { maxLength: 4 }))
    fc.assert(
      fc.property(fc.nat(9), shares, data, (version, share, userData) => {
        const assignment = { ...share }
        const bytes = encodeAssignment(assignment, version, userData)
        expect(bytes).toEqual(MemberAssignment.encode({ version, assignment, userData }))
        expect(decodeAssignment(bytes)).toEqual(MemberAssignment.decode(bytes))
      }),
    )
    expect(decodeAssignment(Buffer.alloc(0))).toBeNull()
  })
})

describe("kafkajs's own round robin", () => {
  it('works on the fake, and assigns as the default does', async () => {
    for (const partitionAssigners of [undefined, [PartitionAssigners.roundRobin]]) {
      const kafka = createFakeKafka({ topics: { a: 3, b: 2 } })
      const consumers = [1, 2].map(() =>
        kafka.client().consumer({ groupId: 'g', ...(partitionAssigners ? { partitionAssigners } : {}) }),
      )
      for (const consumer of consumers) {
        await consumer.connect()
        await consumer.subscribe({ topics: ['a', 'b'] })
      }
      await Promise.all(consumers.map((consumer) => consumer.run({ eachMessage: async () => undefined })))
      expect(kafka.broker.members('g').map(({ assignment }) => assignment)).toEqual([
        { a: [0, 2], b: [1] },
        { a: [1], b: [0] },
      ])
      await Promise.all(consumers.map((consumer) => consumer.disconnect()))
    }
  })
})

describe('the hash of a key', () => {
  const theirs = inside('kafkajs/src/producer/partitioners/default/murmur2.js') as (key: Buffer | string) => number

  it("is kafkajs's", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array().map((bytes) => Buffer.from(bytes)),
          fc.string({ unit: 'binary' }),
        ),
        (key) => {
          expect(murmur2(key)).toBe(theirs(key))
        },
      ),
    )
  })
})

describe('the size of a batch', () => {
  type Encoded = { size(): number }
  const Record = inside('kafkajs/src/protocol/recordBatch/record/v0/index.js') as (record: object) => unknown
  const { RecordBatch } = inside('kafkajs/src/protocol/recordBatch/v0/index.js') as {
    RecordBatch: (batch: object) => Promise<Encoded>
  }

  it('is what kafkajs puts on the wire', async () => {
    const bytes = fc.option(fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)))
    const name = fc.string({ unit: 'grapheme' }).filter((one) => one !== '__proto__')
    const headers = fc.dictionary(name, fc.uint8Array({ maxLength: 200 }), { maxKeys: 3 })
    const record = fc.record({ key: bytes, value: bytes, headers, age: fc.nat(10 ** 7) })
    await fc.assert(
      fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 90 }), async (records) => {
        const first = Math.min(...records.map(({ age }) => age))
        const wire = await RecordBatch({
          records: records.map(({ key, value, headers: named, age }, offsetDelta) =>
            Record({
              key,
              value,
              offsetDelta,
              timestampDelta: age - first,
              headers: Object.fromEntries(Object.entries(named).map(([name, one]) => [name, Buffer.from(one)])),
            }),
          ),
          firstTimestamp: first,
          maxTimestamp: first,
        })
        const ours = records.map(({ key, value, headers: named, age }) => ({
          timestamp: age,
          key,
          value,
          headers: Object.entries(named).map(([name, one]) => [name, Buffer.from(one)] as const),
          control: false,
        }))
        expect(sizeOfBatch(ours)).toBe(wire.size())
      }),
      { numRuns: 60 },
    )
  })
})

describe('errors', () => {
  interface Code {
    type: string
    code: number
    retriable: boolean
    message: string
  }
  const { errorCodes } = inside('kafkajs/src/protocol/error.js') as { errorCodes: Code[] }

  it('have the codes and words of kafkajs', () => {
    for (const [type, [code, retriable, message]] of Object.entries(PROTOCOL_ERRORS)) {
      expect(errorCodes.find((one) => one.type === type)).toMatchObject({ code, retriable, message })
    }
  })
})
