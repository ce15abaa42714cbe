import { gzipSync } from 'node:zlib'

export interface Header {
  name: string | null
  value: Buffer | null
}
export interface RecordSpec {
  attributes: number
  timestampDelta: bigint
  offsetDelta: number
  key: Buffer | null
  value: Buffer | null
  headers: Header[] | 'none'
}
export interface BatchSpec {
  firstOffset: bigint
  firstTimestamp: bigint
  maxTimestamp: bigint
  leaderEpoch: number
  /** Codec, time type, transaction, control. */
  attributes: number
  producerId: bigint
  records: RecordSpec[]
}
export interface PartitionSpec {
  partition: number
  batches: BatchSpec[]
  aborted: { producerId: bigint; firstOffset: bigint }[] | 'none'
  /** Bytes of the last batch that the broker has cut off. */
  cut: number
}

const int = (bytes: 1 | 2 | 4, value: number): Buffer => {
  const buffer = Buffer.alloc(bytes)
  buffer.writeIntBE(value, 0, bytes)
  return buffer
}
const int64 = (value: bigint): Buffer => {
  const buffer = Buffer.alloc(8)
  buffer.writeBigInt64BE(value)
  return buffer
}
function varint(value: bigint | number): Buffer {
  const big = BigInt(value)
  let left = BigInt.asUintN(64, (big << 1n) ^ (big >> 63n))
  const bytes: number[] = []
  do {
    bytes.push(Number(left & 0x7fn) | (left > 0x7fn ? 0x80 : 0))
    left >>= 7n
  } while (left > 0n)
  return Buffer.from(bytes)
}
const sized = (bytes: Buffer | null): Buffer =>
  bytes === null ? varint(-1) : Buffer.concat([varint(bytes.length), bytes])
const array = (items: readonly Buffer[]): Buffer => Buffer.concat([int(4, items.length), ...items])

function record({ attributes, timestampDelta, offsetDelta, key, value, headers }: RecordSpec): Buffer {
  const list =
    headers === 'none'
      ? varint(-1)
      : Buffer.concat([
          varint(headers.length),
          ...headers.map(({ name, value: one }) =>
            Buffer.concat([sized(name === null ? null : Buffer.from(name)), sized(one)]),
          ),
        ])
  const body = Buffer.concat([
    int(1, attributes),
    varint(timestampDelta),
    varint(offsetDelta),
    sized(key),
    sized(value),
    list,
  ])
  return Buffer.concat([varint(body.length), body])
}

function batch(spec: BatchSpec): Buffer {
  const records = Buffer.concat(spec.records.map(record))
  const body = Buffer.concat([
    int(4, spec.leaderEpoch),
    int(1, 2),
    int(4, 0),
    int(2, spec.attributes),
    int(4, spec.records.length),
    int64(spec.firstTimestamp),
    int64(spec.maxTimestamp),
    int64(spec.producerId),
    int(2, 3),
    int(4, 4),
    int(4, spec.records.length),
    (spec.attributes & 7) === 1 ? gzipSync(records) : records,
  ])
  return Buffer.concat([int64(spec.firstOffset), int(4, body.length), body])
}

/** The bytes of an answer to a fetch of version 11, behind their length and number. */
export function fetchAnswer(partitions: readonly PartitionSpec[]): Buffer {
  const encoded = partitions.map(({ partition, batches, aborted, cut }) => {
    const whole = Buffer.concat(batches.map(batch))
    const set = whole.subarray(0, Math.max(0, whole.length - cut))
    return Buffer.concat([
      int(4, partition),
      int(2, 0),
      int64(1000n),
      int64(999n),
      int64(-1n),
      aborted === 'none'
        ? int(4, -1)
        : array(aborted.map(({ producerId, firstOffset }) => Buffer.concat([int64(producerId), int64(firstOffset)]))),
      int(4, -1),
      int(4, set.length),
      set,
    ])
  })
  const topic = Buffer.concat([int(2, 6), Buffer.from('orders'), array(encoded)])
  return Buffer.concat([int(4, 7), int(2, 0), int(4, 0), array([topic])])
}
