/**
 * Headers between a kafkajs client and the log, with the quirks of kafkajs 2.2.4 on both ways: what it cannot write
 * throws a TypeError; what it reads is folded into a plain object.
 */
import type { Header } from '../record'

/** Own names of the object, an array once for each element: `protocol/recordBatch/record/v0/index.js`. */
export function encodeHeaders(headers: object | null | undefined): Header[] {
  if (headers === undefined) return []
  // kafkajs calls Object.keys on it, which refuses null with a TypeError; so do we.
  return Object.entries(headers as object).flatMap(([name, value]: [string, unknown]) =>
    Array.isArray(value)
      ? value.map((one: unknown): Header => [name, encodeHeaderValue(one)])
      : [[name, encodeHeaderValue(value)] as const],
  )
}

function encodeHeaderValue(value: unknown): Buffer {
  // Measures before it writes, and that is where kafkajs fails: the TypeError of Buffer.byteLength is the very one.
  Buffer.byteLength(value as string)
  return encodeBytes(value) ?? Buffer.alloc(0)
}

/** Keys, values and header values: Buffers as they are, null and undefined as null, all else as text. */
export function encodeBytes(value: unknown): Buffer | null {
  if (value === null || value === undefined) return null
  Buffer.byteLength(value as string)
  // Copies: the log must not change when the caller reuses its buffer.
  return Buffer.isBuffer(value) ? Buffer.from(value) : Buffer.from(String(value as string))
}

/** What a consumer is given: a repeated name as an array, an inherited name as a pair with the inherited value. */
export function decodeHeaders(headers: readonly Header[]): Record<string, unknown> {
  return headers.reduce<Record<string, unknown>>((object, [name, bytes]) => {
    const value = copy(bytes)
    const before: unknown = object[name]
    const folded: unknown =
      before === undefined ? value : Array.isArray(before) ? [...(before as unknown[]), value] : [before, value]
    return { ...object, [name]: folded }
  }, {})
}

/** The reader gets bytes of its own: what a handler does to them must not reach the log. */
export const copy = (bytes: Buffer | null): Buffer | null => (bytes === null ? null : Buffer.from(bytes))
