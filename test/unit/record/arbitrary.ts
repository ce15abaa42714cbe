import fc from 'fast-check'
import { HEADER } from '../../../src/envelope'
import type { Header } from '../../../src/record'

/** Names that plain objects inherit, that sort as integers, or that are odd in another way. */
const oddNames = [
  'constructor',
  'toString',
  '__proto__',
  'hasOwnProperty',
  'valueOf',
  '',
  '1',
  '0',
  '😀',
  'a',
  'A',
  ' ',
]

export const bytes = fc.uint8Array({ maxLength: 12 }).map((array) => Buffer.from(array))

export const foreignName = fc.oneof(
  fc.constantFrom(...oddNames),
  fc.constantFrom('traceparent', 'b3', 'x-attempt '),
  fc.string({ unit: 'grapheme', maxLength: 8 }),
)

const value = fc.oneof(bytes, fc.constant(null), fc.constant(Buffer.alloc(0)))

export const foreignHeaders: fc.Arbitrary<Header[]> = fc.array(fc.tuple(foreignName, value), { maxLength: 12 })

const ownValue = fc.oneof(
  value,
  fc
    .constantFrom('-5', '-1', 'NaN', '1e9', 'abc', '[1,2]', '007', '253402300799000', 'true', '2', '[]', '[["a",1]]')
    .map((text) => Buffer.from(text)),
  fc.json().map((text) => Buffer.from(text)),
)

/** Headers of our names with anything in them. */
export const ownHeaders: fc.Arbitrary<Header[]> = fc.array(
  fc.tuple(fc.constantFrom(...Object.values(HEADER)), ownValue),
  { maxLength: 12 },
)

export const anyHeaders = fc.tuple(foreignHeaders, ownHeaders).map(([foreign, own]) => [...foreign, ...own])

/** The values of each name, in order: what P3 promises. The order across names is kafkajs's to lose. */
export function byName(headers: readonly Header[]): Map<string, (string | null)[]> {
  const map = new Map<string, (string | null)[]>()
  for (const [name, bytes] of headers) {
    const values = map.get(name) ?? []
    values.push(bytes && bytes.toString('hex'))
    map.set(name, values)
  }
  return map
}
