/**
 * Kafka's wire protocol, as much as is needed to write what any producer may write (null headers, a name twice, names
 * like `__proto__`) and to read back what stands in a log, byte for byte. kafkajs can do neither: it throws on null and
 * folds headers into an object. Produce v3 and Fetch v4, uncompressed batches of magic 2.
 */
import { createRequire } from 'node:module'
import { connect, type Socket } from 'node:net'

const crc32c = createRequire(import.meta.url)('kafkajs/src/protocol/recordBatch/crc32C') as (bytes: Buffer) => number

export type Bytes = Buffer | string | null

export interface WireRecord {
  readonly key?: Bytes
  readonly value?: Bytes
  readonly headers?: readonly (readonly [name: string, value: Bytes])[]
  /** ms since the epoch; now unless told. */
  readonly timestamp?: number
}

export interface StoredRecord {
  readonly partition: number
  readonly offset: bigint
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[]
}

const PRODUCE = [0, 3] as const
const FETCH = [1, 4] as const
const ALTER_CLIENT_QUOTAS = [49, 0] as const
/** UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER. */
const NOT_YET = [3, 5, 6]
const MAX_BYTES = 50 * 1024 * 1024
const CONTROL = 0x20
const TRANSACTIONAL = 0x10
const READ_COMMITTED = Buffer.from([1])

/** One connection to one broker. Requests are answered in order, so each waits for the one before. */
export class Wire {
  #socket: Socket | undefined
  #turn: Promise<unknown> = Promise.resolve()
  #correlation = 0

  constructor(
    readonly host: string,
    readonly port: number,
  ) {}

  /** Appends records to one partition as one batch; the offset of the first. */
  async produce(topic: string, partition: number, records: readonly WireRecord[], tries = 500): Promise<bigint> {
    const batch = encodeBatch(records)
    const body = [text(null), int16(-1), int32(30_000), int32(1), text(topic), int32(1), int32(partition)]
    const answer = await this.#ask(PRODUCE, [...body, int32(batch.length), batch])
    answer.skip(4).skipText().skip(8)
    const error = answer.int16()
    // A broker that is not the leader yet, of a topic or partition that was made a moment ago.
    if (NOT_YET.includes(error) && tries > 1) return this.produce(topic, partition, records, tries - 1)
    if (error !== 0) throw new Error(`the broker refused a record for ${topic}/${partition}: error ${error}`)
    return answer.int64()
  }

  /**
   * What stands in a partition from an offset on, as much as one answer holds; control records are left out, and so is
   * what is in open or aborted transactions.
   */
  async fetch(topic: string, partition: number, from: bigint): Promise<{ records: StoredRecord[]; next: bigint }> {
    const limits = [int32(-1), int32(0), int32(0), int32(MAX_BYTES), READ_COMMITTED]
    const place = [int32(1), text(topic), int32(1), int32(partition), int64(from), int32(MAX_BYTES)]
    const answer = await this.#ask(FETCH, [...limits, ...place])
    answer.skip(8).skipText().skip(8)
    const error = answer.int16()
    if (error !== 0) throw new Error(`the broker refused to read ${topic}/${partition}@${from}: error ${error}`)
    answer.skip(16)
    const aborted = Array.from({ length: Math.max(0, answer.int32()) }, () => ({
      id: answer.int64(),
      from: answer.int64(),
    }))
    const found = decodeBatches(new Reader(answer.bytes(answer.int32()) ?? Buffer.alloc(0)), partition, aborted)
    return { records: found.records.filter(({ offset }) => offset >= from), next: found.next ?? from }
  }

  /** How many bytes a second clients of this id may fetch; undefined takes the limit away. */
  async limitFetches(clientId: string, bytesPerSecond: number | undefined): Promise<void> {
    const entity = [int32(1), text('client-id'), text(clientId)]
    const isRemoved = Buffer.from([bytesPerSecond === undefined ? 1 : 0])
    const change = [int32(1), text('consumer_byte_rate'), float64(bytesPerSecond ?? 0), isRemoved]
    const answer = await this.#ask(ALTER_CLIENT_QUOTAS, [int32(1), ...entity, ...change, Buffer.from([0])])
    const error = answer.skip(8).int16()
    if (error !== 0) throw new Error(`the broker refused a quota for ${clientId}: error ${error}`)
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }

  #ask([key, version]: readonly [number, number], body: readonly Buffer[]): Promise<Reader> {
    const answer = this.#turn.then(async () => {
      const socket = (this.#socket ??= await this.#connect())
      const request = Buffer.concat([int16(key), int16(version), int32(++this.#correlation), text('wire'), ...body])
      socket.write(Buffer.concat([int32(request.length), request]))
      return new Reader(await readFrame(socket)).skip(4)
    })
    this.#turn = answer.catch(() => this.close())
    return answer
  }

  #connect(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: this.host, port: this.port }, () => resolve(socket))
      socket.once('error', reject)
      // Brokers close what has been idle for long.
      socket.once('close', () => {
        if (this.#socket === socket) this.#socket = undefined
      })
    })
  }
}

function readFrame(socket: Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const end = (finish: () => void): void => {
      socket.off('data', take).off('close', closed)
      finish()
    }
    const closed = (): void => end(() => reject(new Error('the broker closed the connection')))
    const take = (chunk: Buffer): void => {
      chunks.push(chunk)
      const all = Buffer.concat(chunks)
      if (all.length < 4 || all.length < 4 + all.readInt32BE()) return
      end(() => resolve(all.subarray(4)))
    }
    socket.on('data', take).on('close', closed)
  })
}

const int16 = (value: number): Buffer => Buffer.from([(value >> 8) & 0xff, value & 0xff])

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(value)
  return bytes
}

function float64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleBE(value)
  return bytes
}

const text = (value: string | null): Buffer =>
  value === null ? int16(-1) : Buffer.concat([int16(Buffer.byteLength(value)), Buffer.from(value)])

/** Zigzag, seven bits a byte. */
function varint(value: bigint | number): Buffer {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n))
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  bytes.push(Number(rest))
  return Buffer.from(bytes)
}

const varbytes = (value: Bytes | undefined): Buffer => {
  if (value === null || value === undefined) return varint(-1)
  const bytes = Buffer.from(value as Buffer)
  return Buffer.concat([varint(bytes.length), bytes])
}

function encodeBatch(records: readonly WireRecord[]): Buffer {
  const times = records.map(({ timestamp }) => BigInt(timestamp ?? Date.now()))
  const first = times[0] ?? 0n
  const last = times.reduce((a, b) => (a > b ? a : b), first)
  const encoded = records.map(({ key, value, headers = [] }, i) => {
    const named = headers.flatMap(([name, bytes]) => [varbytes(name), varbytes(bytes)])
    const fields = [varint((times[i] ?? first) - first), varint(i), varbytes(key), varbytes(value)]
    const record = Buffer.concat([Buffer.from([0]), ...fields, varint(headers.length), ...named])
    return Buffer.concat([varint(record.length), record])
  })
  const [offset, attributes, noProducer] = [int32(records.length - 1), int16(0), [int64(-1n), int16(-1), int32(-1)]]
  const body = Buffer.concat([
    attributes,
    offset,
    int64(first),
    int64(last),
    ...noProducer,
    int32(records.length),
    ...encoded,
  ])
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(crc32c(body) >>> 0)
  const rest = Buffer.concat([int32(-1), Buffer.from([2]), crc, body])
  return Buffer.concat([int64(0n), int32(rest.length), rest])
}

function decodeBatches(
  reader: Reader,
  partition: number,
  aborted: readonly { id: bigint; from: bigint }[],
): { records: StoredRecord[]; next: bigint | undefined } {
  const ahead = [...aborted].sort((a, b) => (a.from < b.from ? -1 : 1))
  /** Producers whose present transaction was aborted. */
  const skipped = new Set<bigint>()
  const records: StoredRecord[] = []
  let next: bigint | undefined
  while (reader.left >= 12) {
    const base = reader.int64()
    const length = reader.int32()
    // The broker may cut the last batch off in the middle.
    if (reader.left < length) break
    const batch = new Reader(reader.bytes(length)!).skip(9)
    const attributes = batch.int16()
    next = base + BigInt(batch.int32()) + 1n
    const firstTime = batch.int64()
    const id = batch.skip(8).int64()
    const count = batch.skip(6).int32()
    while (ahead[0] !== undefined && ahead[0].from <= base) skipped.add(ahead.shift()!.id)
    if ((attributes & CONTROL) !== 0) {
      skipped.delete(id)
      continue
    }
    if ((attributes & TRANSACTIONAL) !== 0 && skipped.has(id)) continue
    for (let i = 0; i < count; i++) {
      batch.varint()
      batch.skip(1)
      const timestamp = Number(firstTime + batch.varint())
      const offset = base + batch.varint()
      const [key, value] = [batch.varbytes(), batch.varbytes()]
      const headers = Array.from(
        { length: Number(batch.varint()) },
        () => [String(batch.varbytes()), batch.varbytes()] as const,
      )
      records.push({ partition, offset, timestamp, key, value, headers })
    }
  }
  return { records, next }
}

class Reader {
  #at = 0
  constructor(readonly buffer: Buffer) {}

  get left(): number {
    return this.buffer.length - this.#at
  }

  skip(count: number): this {
    this.#at += count
    return this
  }

  skipText(): this {
    return this.skip(this.int16())
  }

  int16(): number {
    return this.buffer.readInt16BE(this.skip(2).#at - 2)
  }

  int32(): number {
    return this.buffer.readInt32BE(this.skip(4).#at - 4)
  }

  int64(): bigint {
    return this.buffer.readBigInt64BE(this.skip(8).#at - 8)
  }

  bytes(length: number): Buffer | null {
    if (length < 0) return null
    return Buffer.from(this.buffer.subarray(this.#at, this.skip(length).#at))
  }

  varint(): bigint {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.buffer[this.#at++] ?? 0
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return (value >> 1n) ^ -(value & 1n)
    }
  }

  varbytes(): Buffer | null {
    return this.bytes(Number(this.varint()))
  }
}
