/**
 * Decodes the answer to a fetch as kafkajs does, to the same objects, in a fraction of the time: kafkajs makes a BigInt for
 * each byte of a number, and four views and a closure for each record, which is most of what a consumer costs
 * (bench/README.md has the figures).
 *
 * Only what is in good order, and in the one version that kafkajs speaks with brokers since 2.3, is decoded here. Of
 * anything else (another message format, a compressed batch, whose codec kafkajs's user may have chosen, a length that leads out
 * of its record) nothing is said, and kafkajs decodes the whole answer itself: so its errors stay its own.
 *
 * Must never happen: an object that kafkajs would have made differently (test/unit/adapters/kafkajs/fetch-decoder.test.ts holds
 * both against each other); a record left out.
 */

/** The version of the request that is answered. */
export const FETCH_VERSION = 11

/** Of a batch: where its fields stand, https://kafka.apache.org/documentation/#recordbatch. */
const AT = {
  length: 8,
  leaderEpoch: 12,
  magic: 16,
  attributes: 21,
  lastOffsetDelta: 23,
  firstTimestamp: 27,
  maxTimestamp: 35,
  producerId: 43,
  producerEpoch: 51,
  firstSequence: 53,
  count: 57,
  records: 61,
} as const
/** Bytes of a batch that `length` does not count. */
const LEAD = AT.leaderEpoch
/** With fewer bytes left kafkajs looks no further. */
const LEAST = 49

const MAGIC = 2
const CODEC = 0x07
const LOG_APPEND_TIME = 0x08
const TRANSACTIONAL = 0x10
const CONTROL = 0x20

export interface DecodedFetch {
  throttleTime: 0
  clientSideThrottleTime: number
  errorCode: number
  sessionId: number
  responses: { topicName: string | null; partitions: DecodedPartition[] }[]
}

interface DecodedPartition {
  partition: number
  errorCode: number
  highWatermark: string
  lastStableOffset: string
  lastStartOffset: string
  abortedTransactions: { producerId: string; firstOffset: string }[]
  preferredReadReplica: number
  messages: DecodedMessage[]
}

interface DecodedMessage {
  magicByte: number
  attributes: number
  timestamp: string
  offset: string
  key: Buffer | null
  value: Buffer | null
  headers: Record<string, unknown>
  isControlRecord: boolean
  batchContext: BatchContext
}

interface BatchContext {
  firstOffset: string
  firstTimestamp: string
  partitionLeaderEpoch: number
  inTransaction: boolean
  isControlBatch: boolean
  lastOffsetDelta: number
  producerId: string
  producerEpoch: number
  firstSequence: number
  maxTimestamp: string
  timestampType: number
  magicByte: number
}

/** Not in good order, or none of ours: kafkajs is asked. */
class NotOurs extends Error {}

/** Undefined where kafkajs is to decode it. */
export function decodeFetch(answer: Buffer): DecodedFetch | undefined {
  try {
    return decode(new Reader(answer, 0, answer.length))
  } catch {
    return undefined
  }
}

function decode(from: Reader): DecodedFetch {
  const clientSideThrottleTime = from.int32()
  const errorCode = from.int16()
  const sessionId = from.int32()
  const responses: DecodedFetch['responses'] = []
  for (let topics = from.count(); topics > 0; topics--) {
    const topicName = from.string()
    const partitions: DecodedPartition[] = []
    for (let left = from.count(); left > 0; left--) partitions.push(decodePartition(from))
    responses.push({ topicName, partitions })
  }
  return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses }
}

function decodePartition(from: Reader): DecodedPartition {
  const partition = from.int32()
  const errorCode = from.int16()
  const highWatermark = from.int64().toString()
  const lastStableOffset = from.int64().toString()
  const lastStartOffset = from.int64().toString()
  const abortedTransactions: DecodedPartition['abortedTransactions'] = []
  for (let left = from.count(); left > 0; left--) {
    abortedTransactions.push({ producerId: from.int64().toString(), firstOffset: from.int64().toString() })
  }
  const preferredReadReplica = from.int32()
  const messages: DecodedMessage[] = []
  const size = from.int32()
  if (size > 0) decodeBatches(from.part(size), messages)
  return {
    partition,
    errorCode,
    highWatermark,
    lastStableOffset,
    lastStartOffset,
    abortedTransactions,
    preferredReadReplica,
    messages,
  }
}

/** The broker cuts off the last batch where it may send no more: what is not whole is left. */
function decodeBatches(from: Reader, messages: DecodedMessage[]): void {
  if (from.left < LEAST) throw new NotOurs()
  while (from.left >= LEAST) {
    const { buffer, at } = from
    const size = buffer.readInt32BE(at + AT.length)
    if (size > from.left - LEAD) return
    if (buffer[at + AT.magic] !== MAGIC || size < AT.records - LEAD) throw new NotOurs()
    const end = at + LEAD + size
    const attributes = buffer.readInt16BE(at + AT.attributes)
    if ((attributes & CODEC) !== 0) throw new NotOurs()
    const context = contextOf(buffer, at, attributes)
    const base = small(buffer, at)
    const first = small(buffer, at + AT.firstTimestamp)
    decodeRecords(new Reader(buffer, at + AT.count, end), base, first, context, messages)
    from.at = end
  }
}

function contextOf(buffer: Buffer, at: number, attributes: number): BatchContext {
  return {
    firstOffset: buffer.readBigInt64BE(at).toString(),
    firstTimestamp: buffer.readBigInt64BE(at + AT.firstTimestamp).toString(),
    partitionLeaderEpoch: buffer.readInt32BE(at + AT.leaderEpoch),
    inTransaction: (attributes & TRANSACTIONAL) > 0,
    isControlBatch: (attributes & CONTROL) > 0,
    lastOffsetDelta: buffer.readInt32BE(at + AT.lastOffsetDelta),
    producerId: buffer.readBigInt64BE(at + AT.producerId).toString(),
    producerEpoch: buffer.readInt16BE(at + AT.producerEpoch),
    firstSequence: buffer.readInt32BE(at + AT.firstSequence),
    maxTimestamp: buffer.readBigInt64BE(at + AT.maxTimestamp).toString(),
    timestampType: (attributes & LOG_APPEND_TIME) > 0 ? 1 : 0,
    magicByte: MAGIC,
  }
}

function decodeRecords(
  from: Reader,
  base: number,
  first: number,
  context: BatchContext,
  messages: DecodedMessage[],
): void {
  const count = from.int32()
  if (count < 0) throw new NotOurs()
  const { isControlBatch, timestampType, maxTimestamp } = context
  // Many records of a batch bear the same time.
  let delta = 0
  let timestamp = timestampType === 1 ? maxTimestamp : context.firstTimestamp
  for (let left = count; left > 0; left--) {
    const size = from.varint()
    const end = from.at + size
    if (size < 0 || end > from.end) throw new NotOurs()
    const attributes = from.int8()
    const thisDelta = from.varlong()
    if (thisDelta !== delta && timestampType === 0) {
      delta = thisDelta
      timestamp = exact(first + delta)
    }
    const offset = exact(base + from.varint())
    const key = from.bytes()
    const value = from.bytes()
    const headers = from.headers()
    if (from.at > end) throw new NotOurs()
    from.at = end
    messages.push({
      magicByte: MAGIC,
      attributes,
      timestamp,
      offset,
      key,
      value,
      headers,
      isControlRecord: isControlBatch,
      batchContext: context,
    })
  }
}

/** A 64-bit number in a double, which loses nothing of it. */
function small(buffer: Buffer, at: number): number {
  const value = buffer.readInt32BE(at) * 2 ** 32 + buffer.readUInt32BE(at + 4)
  if (!Number.isSafeInteger(value)) throw new NotOurs()
  return value
}

function exact(value: number): string {
  if (!Number.isSafeInteger(value)) throw new NotOurs()
  return String(value)
}

/** Reads on from `at`; never beyond `end`. */
class Reader {
  constructor(
    readonly buffer: Buffer,
    public at: number,
    readonly end: number,
  ) {}

  get left(): number {
    return this.end - this.at
  }

  /** Moves on, and says where it was. */
  #pass(bytes: number): number {
    const { at } = this
    if (at + bytes > this.end) throw new NotOurs()
    this.at = at + bytes
    return at
  }

  int8(): number {
    return this.buffer.readInt8(this.#pass(1))
  }

  int16(): number {
    return this.buffer.readInt16BE(this.#pass(2))
  }

  int32(): number {
    return this.buffer.readInt32BE(this.#pass(4))
  }

  int64(): bigint {
    return this.buffer.readBigInt64BE(this.#pass(8))
  }

  /** Of an array; -1 is none. */
  count(): number {
    const count = this.int32()
    if (count < -1) throw new NotOurs()
    return count
  }

  string(): string | null {
    const size = this.int16()
    if (size === -1) return null
    if (size < 0) throw new NotOurs()
    const at = this.#pass(size)
    return this.buffer.toString('utf8', at, at + size)
  }

  part(size: number): Reader {
    const at = this.#pass(size)
    return new Reader(this.buffer, at, at + size)
  }

  varint(): number {
    const { buffer } = this
    let byte = buffer[this.#pass(1)]!
    if (byte < 0x80) return (byte >>> 1) ^ -(byte & 1)
    let value = byte & 0x7f
    for (let shift = 7; byte >= 0x80; shift += 7) {
      if (shift > 28) throw new NotOurs()
      byte = buffer[this.#pass(1)]!
      value |= (byte & 0x7f) << shift
    }
    return (value >>> 1) ^ -(value & 1)
  }

  varlong(): number {
    const { buffer } = this
    let byte = buffer[this.#pass(1)]!
    if (byte < 0x80) return (byte >>> 1) ^ -(byte & 1)
    let value = byte & 0x7f
    for (let power = 2 ** 7; byte >= 0x80; power *= 2 ** 7) {
      byte = buffer[this.#pass(1)]!
      value += (byte & 0x7f) * power
      if (!Number.isSafeInteger(value)) throw new NotOurs()
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  /** With its length in front; null where that is -1. */
  bytes(): Buffer | null {
    const size = this.varint()
    if (size === -1) return null
    if (size < 0) throw new NotOurs()
    const at = this.#pass(size)
    return this.buffer.subarray(at, at + size)
  }

  /** Several of one name become an array, as kafkajs has it: what an object inherits counts as there already. */
  headers(): Record<string, unknown> {
    const headers: Record<string, unknown> = {}
    const count = this.varint()
    if (count < -1) throw new NotOurs()
    for (let left = count; left > 0; left--) {
      const size = this.varint()
      if (size < -1) throw new NotOurs()
      const at = this.#pass(Math.max(0, size))
      const name = size === -1 ? 'null' : this.buffer.toString('utf8', at, at + size)
      const value = this.bytes()
      const before = headers[name]
      const all =
        before === undefined ? value : Array.isArray(before) ? [...(before as unknown[]), value] : [before, value]
      if (name === '__proto__') {
        Object.defineProperty(headers, name, { value: all, enumerable: true, configurable: true, writable: true })
      } else headers[name] = all
    }
    return headers
  }
}
