/**
 * What stands on the broker's disk: topics, partitions, records.
 *
 * An offset is given once and never again; records only leave at the low end (`logStart` rises, as retention or
 * DeleteRecords does) or by compaction (a gap, offsets stay). What is written is copied on its way in and out.
 */
import type { Header } from '../record'
import { protocolError } from './errors'
import { Compactor, looksBetween, Segments, type LogWorld } from './log-keeping'
import type { Placement } from './nodes'
import { NO_PRODUCER, ProducerStates, type ProducerMark } from './producer-states'

export interface StoredRecord {
  readonly offset: bigint
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
  /** A transaction marker: takes an offset, is filtered before a handler sees it. */
  readonly control: boolean
  /** The batch it was written in: a fetch brings whole batches. */
  readonly batch: StoredBatch
}

export interface StoredBatch {
  readonly base: bigint
  readonly size: number
  /** Kafka's number of its codec; 0 where there is none. */
  readonly codec: number
  readonly by: ProducerMark
  /** What kafkajs tells of the batch beside each of its messages. */
  readonly context: BatchContext
}

export type BatchContext = ReturnType<typeof contextOf>

export type NewRecord = Omit<StoredRecord, 'offset' | 'size' | 'batch'>

export interface Found {
  readonly records: StoredRecord[]
  readonly bytes: number
}

/** The bytes of a record batch before its records. */
const BATCH_OVERHEAD = 61

export class PartitionLog {
  private list: StoredRecord[] = []
  private start = 0n
  /** The offset the next record gets: the high watermark, since there is one replica. */
  end = 0n
  readonly producers = new ProducerStates()
  private waiting = new Set<() => void>()
  private readonly segments: Segments | undefined
  private readonly compactor: Compactor | undefined
  /** When the broker last looked whether there is anything to throw away. */
  private lookedAt: number

  /** Without a world nothing is thrown away. */
  constructor(private readonly world?: LogWorld) {
    this.lookedAt = world?.now() ?? 0
    this.segments = world && new Segments(world)
    this.compactor = world && this.segments && new Compactor(world, this.segments)
  }

  get records(): readonly StoredRecord[] {
    this.tidy()
    return this.list
  }

  /** The lowest offset that may be read. */
  get logStart(): bigint {
    this.tidy()
    return this.start
  }

  set logStart(offset: bigint) {
    this.start = offset
  }

  /**
   * What a reader of committed records is given ends here: at the first record of a transaction that is still open.
   */
  get lastStable(): bigint {
    return this.producers.firstOpen ?? this.end
  }

  /**
   * Appends one batch; answers the offset of its first record. `sentAt`: where its records bear the
   * time of their arrival, what the sender had said.
   */
  append(batch: readonly NewRecord[], by = NO_PRODUCER, sentAt?: number, codec = 0): bigint {
    this.tidy()
    const base = this.end
    const written: StoredBatch = {
      base,
      size: sizeOfBatch(batch),
      codec,
      by,
      context: contextOf(batch, base, by, sentAt),
    }
    const latest = batch.reduce((max, { timestamp }) => Math.max(max, timestamp), -1)
    this.segments?.add(base, { bytes: written.size, newest: latest })
    for (const record of batch) {
      this.list.push({ ...record, offset: this.end, batch: written })
      this.end += 1n
    }
    if (batch[0]?.control !== true) this.producers.wrote(by, batch.length, { base, timestamp: latest })
    for (const wake of [...this.waiting]) wake()
    return base
  }

  /** Ends a producer's transaction here; answers the offset of the marker. */
  appendMarker({ producerId, epoch }: Pick<ProducerMark, 'producerId' | 'epoch'>, commit: boolean, at: number): bigint {
    const key = Buffer.from([0, 0, 0, commit ? 1 : 0])
    const marker: NewRecord = { timestamp: at, key, value: Buffer.alloc(6), headers: [], control: true }
    this.producers.ended(producerId, epoch, commit, this.end)
    return this.append([marker], { producerId, epoch, sequence: -1, transactional: true })
  }

  /** What became of a record's transaction; `undefined` outside of any. */
  fateOf({ offset, batch }: StoredRecord): 'open' | 'committed' | 'aborted' | undefined {
    const { producerId, transactional } = batch.by
    if (!transactional) return undefined
    const openFrom = this.producers.openFrom(producerId)
    if (openFrom !== undefined && offset >= openFrom) return 'open'
    const isIn = (one: { producerId: bigint; firstOffset: bigint; lastOffset: bigint }): boolean =>
      one.producerId === producerId && one.firstOffset <= offset && offset <= one.lastOffset
    return this.producers.aborted.some(isIn) ? 'aborted' : 'committed'
  }

  /**
   * Records from `from` on and below `to`, by whole batches as far as they fit; with `atLeastOne` the first batch needs
   * not fit.
   */
  read(from: bigint, maxBytes: number, atLeastOne: boolean, to = this.end): Found {
    const records: StoredRecord[] = []
    let bytes = 0
    let base: bigint | undefined
    this.tidy()
    for (let i = this.indexOf(from); i < this.list.length; i++) {
      const record = this.list[i]
      if (record === undefined || record.offset >= to) break
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

  /** The first offset whose record (a marker too) has this timestamp or a later one. */
  offsetAt(timestamp: number): { offset: bigint; timestamp: number } | undefined {
    return this.records.find((record) => record.timestamp >= timestamp)
  }

  deleteBefore(offset: bigint): void {
    if (offset > this.end) throw protocolError('OFFSET_OUT_OF_RANGE')
    if (offset <= this.logStart) return
    this.start = offset
    this.list = this.list.slice(this.indexOf(offset))
    this.segments?.dropBelow(offset, this.end)
  }

  /** All looks of the broker that were due by now, before anything changes. */
  tidy(): void {
    const looks = this.world && looksBetween(this.world, this.lookedAt)
    if (looks === undefined) return
    this.lookedAt = looks.last
    this.keep(looks.first)
    // What happens later without anything new: more is old enough.
    if (looks.last !== looks.first) this.keep(looks.last)
  }

  /** Throws away what retention no longer keeps and what newer records have replaced, in the last segment too. */
  cleanNow(): void {
    const now = this.world?.now() ?? 0
    this.tidy()
    this.keep(now)
    if (this.compactor === undefined || !this.segments?.policies().includes('compact')) return
    this.list = [...this.compactor.compact(this.list, now, this.lastStable)]
  }

  /** As of one look of the broker. */
  private keep(at: number): void {
    if (this.segments === undefined || this.compactor === undefined) return
    if (this.segments.all.length > 0) this.deleteBefore(this.segments.cut(at, this.end))
    const kept = this.compactor.run(this.list, at, this.lastStable)
    if (kept !== this.list) this.list = [...kept]
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
  /** By partition: which nodes have it, and which of them leads. */
  readonly placements: Placement[]
  readonly replicas: number
  /** Only what was set; the defaults are the broker's. */
  readonly config: Map<string, string>
}

function contextOf(batch: readonly NewRecord[], base: bigint, by: ProducerMark, sentAt: number | undefined) {
  const times = batch.map(({ timestamp }) => timestamp)
  return {
    firstOffset: String(base),
    firstTimestamp: String(sentAt ?? Math.min(...times)),
    partitionLeaderEpoch: 0,
    inTransaction: by.transactional,
    isControlBatch: batch[0]?.control ?? false,
    lastOffsetDelta: batch.length - 1,
    producerId: String(by.producerId),
    producerEpoch: by.epoch,
    firstSequence: by.sequence,
    maxTimestamp: String(Math.max(...times)),
    timestampType: sentAt === undefined ? 0 : 1,
    magicByte: 2,
  }
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
