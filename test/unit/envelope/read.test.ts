import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HEADER, isReplayed, LIMIT, readEnvelope, readMainEnvelope } from '../../../src/envelope'
import type { Header } from '../../../src/record'
import { anyHeaders } from '../record/arbitrary'

const header = (name: string, value: string | Buffer | null): Header => [
  name,
  typeof value === 'string' ? Buffer.from(value) : value,
]
const readOne = (name: string, value: string | Buffer | null) => readEnvelope([header(name, value)])

describe('readEnvelope', () => {
  it('P4: never throws, and accounts for every header of ours', () => {
    fc.assert(
      fc.property(anyHeaders, (headers) => {
        const envelope = readEnvelope(headers)
        for (const name of envelope.unreadable) {
          expect(envelope.problems.some((problem) => problem.startsWith(`${name} cannot be read`))).toBe(true)
        }
        for (const problem of envelope.problems) expect(problem.length).toBeLessThan(400)
        const { attempt, dueAt, originalPartition, originalOffset } = envelope
        if (attempt !== undefined) expect(Number.isSafeInteger(attempt) && attempt >= 0).toBe(true)
        if (dueAt !== undefined) expect(Number.isSafeInteger(dueAt) && dueAt >= 0).toBe(true)
        if (originalPartition !== undefined) expect(originalPartition).toBeLessThan(2 ** 31)
        if (originalOffset !== undefined) expect(originalOffset < 2n ** 63n).toBe(true)
      }),
    )
  })

  it('reads nothing from foreign headers', () => {
    const envelope = readEnvelope([header('traceparent', '00-1'), header('X-Attempt', '3'), header('__proto__', 'x')])
    expect(envelope).toMatchObject({ attempt: undefined, group: undefined, history: [], replayed: false, problems: [] })
  })

  it.each(['-5', '-0', '+3', '1e9', 'abc', '[1,2]', '', ' 3', '3 ', '3.0', '0x3', '03', 'NaN', 'Infinity', '٣', '3\n'])(
    'R33: %j is not a number',
    (text) => {
      const names = [HEADER.attempt, HEADER.dueAt, HEADER.originalPartition, HEADER.originalOffset, HEADER.replayCount]
      for (const name of names) expect(readOne(name, text).unreadable).toEqual(new Set([name]))
    },
  )

  it('takes whole numbers up to their limits, and no further', () => {
    expect(readOne(HEADER.attempt, '0').attempt).toBe(0)
    expect(readOne(HEADER.attempt, '999999999999999').attempt).toBe(999_999_999_999_999)
    expect(readOne(HEADER.attempt, '1000000000000000').attempt).toBeUndefined()
    expect(readOne(HEADER.dueAt, '253402300799000').dueAt).toBe(253_402_300_799_000)
    expect(readOne(HEADER.originalPartition, '2147483647').originalPartition).toBe(2_147_483_647)
    expect(readOne(HEADER.originalPartition, '2147483648').originalPartition).toBeUndefined()
    expect(readOne(HEADER.originalOffset, '9223372036854775807').originalOffset).toBe(9_223_372_036_854_775_807n)
    expect(readOne(HEADER.originalOffset, '9223372036854775808').originalOffset).toBeUndefined()
  })

  it('takes any timestamp that Kafka can hold', () => {
    const read = (text: string) => readOne(HEADER.originalTimestamp, text).originalTimestamp
    expect(['-1', '0', '1714564800000', '1714564800000000'].map(read)).toEqual([-1, 0, 1714564800000, 1714564800000000])
    expect(['', '-', '-0', '1.5', '123456789012345678901'].map(read)).toEqual(Array(5).fill(undefined))
  })

  it('takes times in exactly one form', () => {
    const read = (text: string) => readOne(HEADER.firstFailedAt, text).firstFailedAt
    expect(read('2024-05-01T12:00:00.000Z')).toBe(Date.UTC(2024, 4, 1, 12))
    const bad = ['2024-05-01', '2024-05-01T12:00:00Z', '2024-05-01T12:00:00.000+02:00', '2024-02-30T12:00:00.000Z']
    expect(bad.map(read)).toEqual(Array(4).fill(undefined))
    expect(['2024-13-01T12:00:00.000Z', '1714564800000', 'yesterday'].map(read)).toEqual(Array(3).fill(undefined))
  })

  it('takes only legal topic names', () => {
    const read = (text: string | Buffer) => readOne(HEADER.originalTopic, text).originalTopic
    expect(['orders.confirmed', '__consumer_offsets'].map(read)).toEqual(['orders.confirmed', '__consumer_offsets'])
    expect(['', '.', '..', 'a/b', 'a b', 'ä', 'a'.repeat(250)].map(read)).toEqual(Array(7).fill(undefined))
    expect(read(Buffer.from([0xff, 0xfe]))).toBeUndefined()
  })

  it('takes only valid UTF-8 for a group', () => {
    expect(readOne(HEADER.group, 'Büro 1').group).toBe('Büro 1')
    expect(readOne(HEADER.group, '').group).toBeUndefined()
    expect(readOne(HEADER.group, Buffer.from([0xff])).group).toBeUndefined()
  })

  it('shows texts of any bytes', () => {
    expect(readOne(HEADER.error, Buffer.from([0x61, 0xff])).error).toBe('a\ufffd')
    expect(readOne(HEADER.error, '').error).toBe('')
  })

  it('takes null for unreadable', () => {
    expect(readOne(HEADER.attempt, null).problems).toEqual(['x-attempt cannot be read: null'])
  })

  it('R33: looks at no value past its limit, and shows only its beginning', () => {
    const huge = Buffer.alloc(1_000_000, 'x')
    const headers = Object.values(HEADER).map((name) => header(name, huge))
    const { unreadable, problems } = readEnvelope(headers)
    expect(unreadable.size).toBe(headers.length)
    expect(problems).toContain(`x-attempt cannot be read: "${'x'.repeat(40)}"... (1000000 bytes)`)
    for (const problem of problems) expect(problem.length).toBeLessThan(120)
  })

  it('lets the last of a repeated header count, and says so', () => {
    const envelope = readEnvelope([header(HEADER.attempt, '2'), header(HEADER.attempt, '3')])
    expect(envelope.attempt).toBe(3)
    expect(envelope.problems).toEqual(['x-attempt is repeated; the last value counts'])
  })

  it('knows its reasons', () => {
    expect(readOne(HEADER.failureReason, 'crash-loop').failureReason).toBe('crash-loop')
    expect(readOne(HEADER.failureReason, 'bored').failureReason).toBeUndefined()
  })
})

describe('on a main topic', () => {
  it('P4: our headers count only where a replay set them', () => {
    const forged = [header(HEADER.attempt, '4'), header(HEADER.replayForGroup, 'other')]
    expect(readMainEnvelope(forged)).toBeUndefined()
    expect(readMainEnvelope([...forged, header(HEADER.replayed, 'true')])?.replayForGroup).toBe('other')
  })

  it.each(['TRUE', 'True', '1', '', 'true ', 'truetrue', null])('%j is not a replay', (value) => {
    expect(isReplayed([header(HEADER.replayed, value)])).toBe(false)
  })
})

it('has a limit for every header, and no two headers of one name', () => {
  expect(Object.keys(LIMIT)).toEqual(Object.keys(HEADER))
  expect(new Set(Object.values(HEADER)).size).toBe(Object.keys(HEADER).length)
})
