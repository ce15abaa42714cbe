/** Records as nobody should write them, and what their headers say of whose they are; for property tests. */
import fc from 'fast-check'
import { HEADER } from '../../src/envelope'
import type { Bytes } from './wire'

export type Act = 'ok' | 'retry' | 'fatal' | 'once' | 'odd'

export interface HostileRecord {
  readonly where: 'main' | 'retry'
  /** How its handler ends. */
  readonly act: Act
  readonly key: Bytes
  readonly value: Bytes
  /** Told by the scene's own: `{topic}`, `{group}` and `{soon}` in a value. */
  readonly headers: readonly (readonly [name: string, value: Bytes])[]
}

/** Which record a call or a copy is of: keys, values and our own headers may say anything. */
export const ID = 'the-id'

const bytes = (maxLength: number): fc.Arbitrary<Buffer> =>
  fc.uint8Array({ maxLength }).map((array) => Buffer.from(array))

const OWN = Object.values(HEADER)
const LOOK_ALIKE = OWN.slice(0, 4).flatMap((name) => [
  name.toUpperCase(),
  `${name} `,
  `${name}\0`,
  name.replace('x', 'х'),
])
const ODD = [
  'constructor',
  '__proto__',
  'toString',
  'hasOwnProperty',
  '',
  '0',
  '17',
  'traceparent',
  'a b\n',
  'n'.repeat(300),
]

const name = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<string>(...OWN) },
  fc.constantFrom(...LOOK_ALIKE),
  fc.constantFrom(...ODD),
  fc.string({ unit: 'grapheme', maxLength: 8 }),
)

const GARBAGE = ['-1', '0', '1', '2', '3', '007', '+1', ' 2', '2 ', '1.5', '1e9', 'NaN', 'Infinity', 'null', 'true', 'TRUE',
  '999999999999999', '9'.repeat(400), '253402300799000', '9223372036854775807', '-9223372036854775808', '{topic}', '{group}',
  'payroll', 'shipping', '{soon}', '2026-02-30T00:00:00.000Z', '9999-12-31T23:59:59.999Z', '[]', '[[', '["",["a",0]]', '{}',
  '['.repeat(3000), '[["the-id"]]', 'non-retryable', 'crash-loop', 'x'.repeat(5000), '\u0000', 'ÿ'] // prettier-ignore

const value: fc.Arbitrary<Bytes> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom<Bytes>(...GARBAGE) },
  fc.constantFrom<Bytes>(null, ''),
  fc.constant(Buffer.from([0xc3, 0x28, 0xff])),
  bytes(40),
)

/** What a retry or a replay would carry, so that garbage stands in an envelope that is else sound. */
const sound = [
  [HEADER.attempt, '2'],
  [HEADER.dueAt, '0'],
  [HEADER.originalTopic, '{topic}'],
  [HEADER.originalPartition, '0'],
  [HEADER.originalOffset, '3'],
  [HEADER.originalTimestamp, '1'],
  [HEADER.group, '{group}'],
] as const

const of = (own: string, ...values: Bytes[]): fc.Arbitrary<readonly [string, Bytes]> =>
  fc.constantFrom(...values).map((one) => [own, one] as const)

/** Values of the right kind, which could be believed. */
const likely = fc.oneof(
  of(HEADER.dueAt, '253402300799000', '999999999999999', '{soon}', '-1', 'NaN', '1e15'),
  of(HEADER.attempt, '0', '1', '2', '3', '4', '999999999999999', '-1'),
  of(HEADER.originalTopic, '{topic}', 'payroll', '..', null),
  of(HEADER.originalPartition, '0', '2147483647', '2147483648', '-1'),
  of(HEADER.originalOffset, '9223372036854775807', '9223372036854775808', '0'),
  of(HEADER.group, 'shipping', '{group}', 'g'.repeat(256), Buffer.from([0xff])),
  of(HEADER.replayForGroup, 'shipping', '{group}', ''),
  of(HEADER.firstFailedAt, '1970-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'),
  of(HEADER.nullHeaders, `["${ID}","","0"]`, '[["constructor",0,5],"__proto__"]'),
)

const header = fc.oneof(fc.tuple(name, value), likely)
const headers = fc
  .record({
    envelope: fc.constantFrom('none', 'sound', 'replay'),
    some: fc.array(header, { maxLength: 8 }),
    // A name hundreds of times, now and then.
    many: fc.oneof(
      { weight: 8, arbitrary: fc.constant([]) },
      header.map(([one, bytes]) => Array.from({ length: 400 }, () => [one, bytes && bytes.slice(0, 30)] as const)),
    ),
  })
  .map(({ envelope, some, many }) => [
    ...(envelope === 'none' ? [] : sound),
    ...(envelope === 'replay' ? ([[HEADER.replayed, 'true']] as const) : []),
    ...some,
    ...many,
  ])

export const hostileRecord: fc.Arbitrary<HostileRecord> = fc.record({
  where: fc.constantFrom('main', 'main', 'retry'),
  act: fc.constantFrom('ok', 'retry', 'fatal', 'once', 'odd'),
  // kafkajs takes a key of four zero bytes for a marker (a known limit): five cannot be that.
  key: fc.oneof(
    fc.constantFrom<Bytes>(null, '', 'k', '__proto__'),
    bytes(12).filter((key) => key.length !== 4),
  ),
  value: fc.oneof(fc.constantFrom<Bytes>(null, '', '{}'), bytes(60)),
  headers,
})
