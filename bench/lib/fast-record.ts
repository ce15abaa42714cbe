/**
 * For the process that only fills topics: kafkajs writes each record, and each header of it, into a buffer of its own, and a
 * million records with headers take it minutes. Here a record is written into one. Imported before kafkajs is, by run.ts alone;
 * what is measured runs in other processes, on kafkajs as it is.
 */
import { createRequire } from 'node:module'

type Value = Buffer | string | null | undefined
interface Given {
  offsetDelta?: number
  timestampDelta?: number
  key?: Value
  value?: Value
  headers?: Record<string, string | Buffer | (string | Buffer)[]>
}

const LONGEST_VARINT = 10
/** Room for the record's length in front of it. */
const FRONT = 5

let page = Buffer.alloc(64 * 1024)
let at = 0

function room(bytes: number): void {
  if (at + bytes > page.length) page = Buffer.concat([page], 2 * (at + bytes))
}

/** Zigzag, as the format has it; exact up to 2^52. */
function writeVarint(value: number): void {
  let rest = value >= 0 ? value * 2 : -value * 2 - 1
  room(LONGEST_VARINT)
  while (rest >= 0x80) {
    page[at++] = (rest % 0x80) | 0x80
    rest = Math.floor(rest / 0x80)
  }
  page[at++] = rest
}

function writeBytes(value: Value): void {
  if (value === null || value === undefined) return writeVarint(-1)
  const length = typeof value === 'string' ? Buffer.byteLength(value) : value.length
  writeVarint(length)
  room(length)
  if (typeof value === 'string') page.write(value, at, length)
  else value.copy(page, at)
  at += length
}

/** Many records share one object of headers: its bytes are made once. */
const known = new WeakMap<object, Buffer>()

function writeHeaders(headers: NonNullable<Given['headers']>): void {
  let bytes = known.get(headers)
  if (!bytes) {
    const from = at
    const list = Object.entries(headers).flatMap(([name, values]) =>
      (Array.isArray(values) ? values : [values]).map((one) => [name, one] as const),
    )
    writeVarint(list.length)
    for (const [name, one] of list) {
      writeBytes(name)
      writeBytes(one)
    }
    known.set(headers, (bytes = Buffer.from(page.subarray(from, at))))
    at = from
  }
  room(bytes.length)
  bytes.copy(page, at)
  at += bytes.length
}

/** What kafkajs takes for an encoder. */
function encodeRecord(record: Given): { buf: Buffer; buffer: Buffer } {
  at = FRONT
  page[at++] = 0
  writeVarint(record.timestampDelta ?? 0)
  writeVarint(record.offsetDelta ?? 0)
  writeBytes(record.key)
  writeBytes(record.value)
  writeHeaders(record.headers ?? NONE)
  const end = at
  at = 0
  writeVarint(end - FRONT)
  const length = at
  page.copyWithin(FRONT - length, 0, length)
  const buf = Buffer.allocUnsafe(end - FRONT + length)
  page.copy(buf, 0, FRONT - length, end)
  return { buf, buffer: buf }
}

const NONE = {}
const require = createRequire(import.meta.url)
const file = require.resolve('kafkajs/src/protocol/recordBatch/record/v0')
if (require.cache[require.resolve('kafkajs/src/protocol/requests/produce/v3/request')]) {
  throw new Error('kafkajs was loaded first, and writes records in its own way')
}
require(file)
require.cache[file]!.exports = encodeRecord
