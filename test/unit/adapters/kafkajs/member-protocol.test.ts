import fc from 'fast-check'
import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import {
  decodeMemberMetadata,
  encodeMemberAssignment,
  encodeMemberMetadata,
} from '../../../../src/adapters/kafkajs/member-protocol'

const { MemberMetadata, MemberAssignment } = createRequire(import.meta.url)('kafkajs/src/consumer/assignerProtocol.js')

const topics = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), { maxLength: 6 })
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array))

describe("the consumer protocol, against kafkajs's own encoder and decoder", () => {
  test('what a member subscribes to: the same bytes, and read back the same, both ways', () => {
    fc.assert(
      fc.property(fc.nat(3), topics, bytes, (version, names, userData) => {
        const ours = encodeMemberMetadata(version, names, userData)
        expect(ours).toEqual(MemberMetadata.encode({ version, topics: names, userData }))
        expect(decodeMemberMetadata(ours)).toEqual({ topics: names, userData })
        expect(MemberMetadata.decode(ours)).toEqual({ version, topics: names, userData })
      }),
    )
  })

  test('what a member is given: the same bytes, and kafkajs reads the same', () => {
    const partitions = fc.array(fc.nat(2 ** 31 - 1), { maxLength: 6 })
    // kafkajs's decoder loses a topic of the one name that sets a prototype.
    const name = fc.stringMatching(/^[a-z._-]{1,12}$/).filter((text) => text !== '__proto__')
    fc.assert(
      fc.property(fc.nat(3), fc.dictionary(name, partitions, { noNullPrototype: true }), (version, assignment) => {
        const ours = encodeMemberAssignment(version, new Map(Object.entries(assignment)))
        expect(ours).toEqual(MemberAssignment.encode({ version, assignment }))
        expect(MemberAssignment.decode(ours)).toEqual({ version, assignment, userData: Buffer.alloc(0) })
      }),
    )
  })

  test('user data that is null or left out is empty', () => {
    const whole = encodeMemberMetadata(0, ['a'], Buffer.alloc(0))
    const without = whole.subarray(0, whole.length - 4)
    const nulled = Buffer.concat([without, Buffer.from([255, 255, 255, 255])])
    for (const buffer of [whole, without, nulled]) {
      expect(decodeMemberMetadata(buffer)).toEqual({ topics: ['a'], userData: Buffer.alloc(0) })
    }
  })

  test('property: garbage is read or refused, and never keeps the reader busy', () => {
    const garbage = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      // A count of two thousand millions, and then anything; 255s are negative lengths.
      fc
        .array(fc.constantFrom(0, 1, 127, 255, 254), { maxLength: 60 })
        .map((list) => [0, 0, 127, 255, 255, 255, ...list]),
    )
    fc.assert(
      fc.property(garbage, (list) => {
        const buffer = Buffer.from(list)
        try {
          const { topics } = decodeMemberMetadata(buffer)
          expect(topics.length).toBeLessThanOrEqual(buffer.length)
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError)
        }
      }),
    )
  })

  test('a negative length does not move the reader back', () => {
    const endless = Buffer.from([0, 0, 127, 255, 255, 255, 255, 254, 0, 0])
    expect(() => decodeMemberMetadata(endless)).toThrow(RangeError)
  })
})
