/**
 * A request that publishes, written to the very bytes that kafkajs writes, in a third of its time: kafkajs gives each record, and
 * each header of it, a buffer of its own, and each of them to the one around it. Here one is filled from front to end.
 *
 * Only what this library publishes is written here: uncompressed, without timestamps of its own, keys, values and headers as bytes.
 * Of anything else nothing is said, and kafkajs writes (and refuses) it. Property tests hold both against each other.
 */
import { crc32c } from './crc32c'
import { varint as unsigned } from './raw-request'

/** What kafkajs's brokers are given to publish. */
export interface ProduceRequest {
  readonly transactionalId?: string | null | undefined
  readonly acks?: number
  readonly timeout?: number
  readonly producerId?: unknown
  readonly producerEpoch?: number
  readonly compression?: number | undefined
  readonly topicData: readonly {
    readonly topic: string
    readonly partitions: readonly {
      readonly partition: number
      readonly firstSequence?: number
      readonly messages: readonly ProduceMessage[]
    }[]
  }[]
}

interface ProduceMessage {
  readonly key?: unknown
  readonly value?: unknown
  readonly timestamp?: unknown
  readonly headers?: unknown
}

/** The versions of the request that have this layout. */
export const PRODUCE_VERSIONS: readonly number[] = [3, 4, 5, 6, 7]

const MAGIC = 2
const TRANSACTIONAL = 16
const FIRST_PAGE = 64 * 1024
/** No broker takes as much, and `varint` counts no further. */
const LONGEST = 2 ** 29
/** A longer one is not kept for the next request. */
const LONGEST_PAGE = 2 * 1024 * 1024
/** Of a record: its length, attributes, two deltas and three counts. */
const RECORD_ROOM = 7 * 5
/** Of a record batch, what stands in front of its records, and in front of it. */
const BATCH_ROOM = 80
const VARINT_ROOM = 5
/** Names whose bytes are kept: nearly all headers are our own. */
const KNOWN_NAMES = 200

let page = Buffer.allocUnsafeSlow(FIRST_PAGE)
let at = 0
const names = new Map<string, Buffer>()

/** Not what is written here: kafkajs is asked. */
class NotOurs extends Error {}

/** `now`: ms since the epoch, which becomes the time of the records. Undefined where kafkajs is to write it. */
export function encodeProduce(request: ProduceRequest, now: number): Buffer | undefined {
  at = 0
  try {
    write(request, now)
    return Buffer.from(page.subarray(0, at))
  } catch {
    return undefined
  } finally {
    if (page.length > LONGEST_PAGE) page = Buffer.allocUnsafeSlow(FIRST_PAGE)
  }
}

function write({ topicData, compression = 0, acks, timeout, ...from }: ProduceRequest, now: number): void {
  const { transactionalId = null, producerId = -1, producerEpoch = 0 } = from
  if (compression !== 0) throw new NotOurs()
  const producer = { id: BigInt(String(producerId)), epoch: producerEpoch, transactional: Boolean(transactionalId) }
  if (transactionalId === null) int16(-1)
  else string(transactionalId)
  int16(acks!)
  int32(timeout!)
  int32(topicData.length)
  for (const { topic, partitions } of topicData) {
    string(topic)
    int32(partitions.length)
    for (const { partition, messages, firstSequence = 0 } of partitions) {
      int32(partition)
      writeBatch(messages, { ...producer, sequence: firstSequence }, BigInt(now))
    }
  }
}

interface Producer {
  readonly id: bigint
  readonly epoch: number
  readonly transactional: boolean
  readonly sequence: number
}

function writeBatch(messages: readonly ProduceMessage[], producer: Producer, now: bigint): void {
  if (messages.length === 0) throw new NotOurs()
  room(BATCH_ROOM)
  const size = at
  at += 4
  const from = at
  int64(0n) // the broker gives the offset
  const length = at
  at += 4
  int32(0) // leader epoch
  page[at++] = MAGIC
  const crc = at
  at += 4
  int16(producer.transactional ? TRANSACTIONAL : 0)
  int32(messages.length - 1)
  int64(now) // the first and the last record's
  int64(now)
  int64(producer.id)
  int16(producer.epoch)
  int32(producer.sequence)
  int32(messages.length)
  for (let i = 0; i < messages.length; i++) writeRecord(messages[i]!, i)
  page.writeUInt32BE(crc32c(page, crc + 4, at), crc)
  page.writeInt32BE(at - length - 4, length)
  page.writeInt32BE(at - from, size)
}

function writeRecord({ key, value, timestamp, headers = NONE }: ProduceMessage, offsetDelta: number): void {
  if (timestamp !== undefined || typeof headers !== 'object' || headers === null) throw new NotOurs()
  room(RECORD_ROOM + lengthOf(key) + lengthOf(value))
  const start = at
  // Most records are so long that this takes two bytes; else what stands behind it is moved.
  at += 2
  const body = at
  page[at++] = 0 // attributes
  page[at++] = 0 // as late as the first
  varint(offsetDelta)
  bytes(key)
  bytes(value)
  writeHeaders(headers as Record<string, unknown>)
  room(VARINT_ROOM)
  const length = at - body
  const end = at
  at = start
  const gap = sizeOfVarint(length) - 2
  if (gap !== 0) page.copyWithin(body + gap, body, end)
  varint(length)
  at = end + gap
}

const NONE = {}

function writeHeaders(headers: Record<string, unknown>): void {
  const keys = Object.keys(headers)
  let count = 0
  for (const name of keys) {
    const value = headers[name]
    count += Array.isArray(value) ? value.length : 1
  }
  room(VARINT_ROOM)
  varint(count)
  for (const name of keys) {
    const value = headers[name]
    if (!Array.isArray(value)) writeHeader(name, value)
    else for (const one of value) writeHeader(name, one)
  }
}

function writeHeader(name: string, value: unknown): void {
  // kafkajs refuses null here.
  if (!Buffer.isBuffer(value)) throw new NotOurs()
  const encoded = nameBytes(name)
  room(encoded.length + value.length + VARINT_ROOM)
  copy(encoded)
  bytes(value)
}

/** With its length in front. */
function nameBytes(name: string): Buffer {
  const known = names.get(name)
  if (known !== undefined) return known
  const text = Buffer.from(name)
  const made = Buffer.concat([unsigned(2 * text.length), text])
  if (names.size < KNOWN_NAMES) names.set(name, made)
  return made
}

function lengthOf(value: unknown): number {
  if (value === null || value === undefined) return 0
  if (Buffer.isBuffer(value)) return value.length
  throw new NotOurs()
}

/** Room for so many more bytes. */
function room(more: number): void {
  if (at + more <= page.length) return
  if (at + more > LONGEST) throw new NotOurs()
  const larger = Buffer.allocUnsafeSlow(2 * (at + more))
  page.copy(larger, 0, 0, at)
  page = larger
}

/** Into room that there is, as all below. */
function bytes(value: unknown): void {
  if (!Buffer.isBuffer(value)) {
    page[at++] = 1 // -1, for null
    return
  }
  varint(value.length)
  copy(value)
}

/** A call into the engine costs more than a few bytes do. */
function copy(from: Buffer): void {
  const { length } = from
  if (length < 24) for (let i = 0; i < length; i++) page[at + i] = from[i]!
  else page.set(from, at)
  at += length
}

/** Zigzag, as the format has it; of what is not negative, and below 2^30. */
function varint(value: number): void {
  let rest = value << 1
  while (rest >= 0x80) {
    page[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  page[at++] = rest
}

function sizeOfVarint(value: number): number {
  let size = 1
  for (let rest = value << 1; rest >= 0x80; rest >>>= 7) size++
  return size
}

function string(value: string): void {
  const length = Buffer.byteLength(value)
  room(2 + length)
  int16(length)
  page.write(value, at, length)
  at += length
}

function int16(value: number): void {
  room(2)
  at = page.writeInt16BE(value, at)
}

function int32(value: number): void {
  room(4)
  at = page.writeInt32BE(value, at)
}

function int64(value: bigint): void {
  room(8)
  at = page.writeBigInt64BE(value, at)
}
