/**
 * What stands on the broker's disk: topics, partitions, records.
 *
 * An offset is given once and never again; records only leave at the low end (`logStart` rises, as retention or
 * DeleteRecords does) or by compaction (a gap, offsets stay). What is written is copied on its way in and out.
 */
import type { Header } from '../record'
import { protocolError } from './errors'

export interface StoredRecord {
  readonly offset: bigint
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
  /** A transaction marker: takes an offset, is filtered before a handler sees it. */
  readonly control: boolean
  /** The batch it was written in: a fetch brings whole batches. */
  readonly batch: { readonly base: bigint; readonly size: number }
}

export type NewRecord = Omit<StoredRecord, 'offset' | 'size' | 'batch'>

export interface Found {
  readonly records: StoredRecord[]
  readonly bytes: number
}

/** The bytes of a record batch before its records. */
const BATCH_OVERHEAD = 61

export class PartitionLog {
  private list: StoredRecord[] = []
  /** The lowest offset that may be read. */
  logStart = 0n
  /** The offset the next record gets: the high watermark, since there is one replica. */
  end = 0n
  private waiting = new Set<() => void>()

  get records(): readonly StoredRecord[] {
    return this.list
  }

  /** Appends one batch; answers the offset of its first record. */
  append(batch: readonly NewRecord[]): bigint {
    const base = this.end
    const written = { base, size: sizeOfBatch(batch) }
    for (const record of batch) {
      this.list.push({ ...record, offset: this.end, batch: written })
      this.end += 1n
    }
    for (const wake of [...this.waiting]) wake()
    return base
  }

  /** Records from `from` on, by whole batches as far as they fit; with `atLeastOne` the first batch needs not fit. */
  read(from: bigint, maxBytes: number, atLeastOne: boolean): Found {
    const records: StoredRecord[] = []
    let bytes = 0
    let base: bigint | undefined
    for (let i = this.indexOf(from); i < this.list.length; i++) {
      const record = this.list[i]
      if (record === undefined) break
      if (record.batch.base !== base) {
        const fits = bytes + record.batch.size <= maxBytes || (atLeastOne && base === undefined)
        if (!fits) break
        base = record.batch.base
        bytes += record.batch.size
      }
      records.push(record)
    }
    return { records, bytes }
  }

  /** The first offset whose record has this timestamp or a later one. */
  offsetAt(timestamp: number): { offset: bigint; timestamp: number } | undefined {
    return this.list.find((record) => !record.control && record.timestamp >= timestamp)
  }

  deleteBefore(offset: bigint): void {
    if (offset > this.end) throw protocolError('OFFSET_OUT_OF_RANGE')
    if (offset <= this.logStart) return
    this.logStart = offset
    this.list = this.list.slice(this.indexOf(offset))
  }

  compact(keep: (record: StoredRecord) => boolean): void {
    // The last record always stays, as the active segment does: else nobody would learn that the gap is one.
    this.list = this.list.filter((record, i) => i === this.list.length - 1 || keep(record))
  }

  /** Calls back at each append until the returned function is called. */
  onAppend(wake: () => void): () => void {
    this.waiting.add(wake)
    return () => void this.waiting.delete(wake)
  }

  private indexOf(offset: bigint): number {
    let low = 0
    let high = this.list.length
    while (low < high) {
      const middle = (low + high) >> 1
      const record = this.list[middle]
      if (record !== undefined && record.offset < offset) low = middle + 1
      else high = middle
    }
    return low
  }
}

export interface Topic {
  readonly name: string
  readonly partitions: PartitionLog[]
  readonly replicas: number
  /** Only what was set; the defaults are the broker's. */
  readonly config: Map<string, string>
}

/** The size of a batch on the wire, uncompressed, as the broker weighs it. */
export function sizeOfBatch(batch: readonly NewRecord[]): number {
  const first = Math.min(...batch.map(({ timestamp }) => timestamp))
  return batch.reduce((sum, record, i) => sum + sizeOfRecord(record, i, record.timestamp - first), BATCH_OVERHEAD)
}

/** The size of a record on the wire (record format v2), which the broker's limits are about. */
function sizeOfRecord(record: Omit<NewRecord, 'control' | 'timestamp'>, delta: number, age: number): number {
  let body = 1 + varintSize(age) + varintSize(delta) + sizeOfBytes(record.key) + sizeOfBytes(record.value)
  body += varintSize(record.headers.length)
  for (const [name, value] of record.headers) body += sizeOfBytes(Buffer.from(name)) + sizeOfBytes(value)
  return varintSize(body) + body
}

function sizeOfBytes(bytes: Buffer | null): number {
  return bytes === null ? 1 : varintSize(bytes.length) + bytes.length
}

/** Bytes of a zigzag varint. */
function varintSize(value: number): number {
  let rest = value >= 0 ? value * 2 : -value * 2 - 1
  let bytes = 1
  while (rest >= 128) {
    rest = Math.floor(rest / 128)
    bytes++
  }
  return bytes
}
