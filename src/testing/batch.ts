import { withoutAborted } from './filter-aborted'
import { copy, decodeHeaders } from './headers'
import type { StoredRecord } from './log'
import type { AbortedTransaction } from './producer-states'
import type { FakeBatch, FakeMessage } from './types'

/** What kafkajs makes of the answer to one fetch for one partition. */
export class Batch implements FakeBatch {
  readonly messages: FakeMessage[]
  readonly highWatermark: string

  constructor(
    readonly topic: string,
    readonly partition: number,
    readonly fetchedOffset: string,
    private readonly raw: readonly StoredRecord[],
    end: bigint,
    aborted: readonly AbortedTransaction[] = [],
  ) {
    this.highWatermark = String(end)
    this.messages = withoutAborted(raw, aborted)
      .filter((record) => !record.control)
      .map(withContexts())
  }

  isEmpty(): boolean {
    return this.messages.length === 0
  }

  /** Records came, and none of them is for a handler. */
  isEmptyDueToFiltering(): boolean {
    return this.isEmpty() && this.raw.length > 0
  }

  firstOffset(): string | null {
    const first = this.raw[0]
    return first === undefined ? null : String(first.offset)
  }

  /** Of all that came, control records included; the end of the log where nothing did. */
  lastOffset(): string {
    const last = this.raw.at(-1)
    return last === undefined ? String(BigInt(this.highWatermark) - 1n) : String(last.offset)
  }

  offsetLag(): string {
    return String(BigInt(this.highWatermark) - 1n - BigInt(this.lastOffset()))
  }

  offsetLagLow(): string {
    const first = this.raw[0]
    return first === undefined ? '0' : String(BigInt(this.highWatermark) - 1n - first.offset)
  }
}

/** Messages that were written together share what is told of their batch, as in kafkajs. */
function withContexts(): (record: StoredRecord) => FakeMessage {
  let batch: StoredRecord['batch'] | undefined
  let context = {}
  return (record) => {
    if (record.batch !== batch) context = { ...record.batch.context }
    batch = record.batch
    return toMessage(record, context)
  }
}

function toMessage(record: StoredRecord, batchContext: object): FakeMessage {
  const { offset, timestamp, key, value, headers } = record
  return {
    magicByte: 2,
    attributes: 0,
    timestamp: String(timestamp),
    offset: String(offset),
    key: copy(key),
    value: copy(value),
    headers: decodeHeaders(headers),
    isControlRecord: record.control,
    batchContext,
  } as unknown as FakeMessage
}
