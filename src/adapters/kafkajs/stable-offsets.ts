/**
 * Reads committed offsets together with what every transaction that has ended made of them.
 *
 * Before Kafka 4 the coordinator of a group takes over the offsets of a committed transaction a moment after it is over:
 * even who has just taken its id over may read the offset of before, and would do again what stands committed. A broker
 * says so where it is asked to (`require_stable`, in version 7 of OffsetFetch), which kafkajs does not know; the request is
 * made here and sent over kafkajs's own connection to the coordinator.
 */
import { RetrylineError } from '../../errors'
import type { Clock, CommittedOffset, TopicPartition } from '../../ports'

const OFFSET_FETCH = 9
const VERSION = 7
const UNSTABLE_OFFSET_COMMIT = 88
/** How often it is asked again, and how long, ms. */
const LOOK_EVERY = 20
const LOOK_FOR = 5_000

/** What kafkajs gives a partition assigner: its cluster. A fake one may lack any of it. */
export interface CoordinatorsLike {
  findGroupCoordinator?(request: { groupId: string }): Promise<{
    readonly versions?: Record<number, { maxVersion: number } | undefined> | null
    readonly connectionPool?: { send(request: RawRequest): Promise<unknown> }
  }>
}

interface RawRequest {
  request: { apiKey: number; apiVersion: number; apiName: string; encode(): Promise<{ buf: Buffer; buffer: Buffer }> }
  response: { decode(payload: Buffer): Promise<unknown>; parse(decoded: unknown): Promise<unknown> }
}

/** Undefined where the cluster, or its brokers, cannot be asked. */
export async function readStable(
  cluster: CoordinatorsLike | undefined,
  groupId: string,
  partitions: readonly TopicPartition[],
  clock: Clock,
): Promise<readonly CommittedOffset[] | undefined> {
  if (typeof cluster?.findGroupCoordinator !== 'function') return undefined
  const until = clock.monotonic() + LOOK_FOR
  for (;;) {
    const { versions, connectionPool } = await cluster.findGroupCoordinator({ groupId })
    if (connectionPool === undefined || (versions?.[OFFSET_FETCH]?.maxVersion ?? 0) < VERSION) return undefined
    const body = encode(groupId, partitions)
    const answer = await connectionPool.send({
      request: {
        apiKey: OFFSET_FETCH,
        apiVersion: VERSION,
        apiName: 'OffsetFetch',
        encode: () => Promise.resolve({ buf: body, buffer: body }),
      },
      response: {
        decode: (payload) => Promise.resolve(decode(payload)),
        parse: (decoded) => Promise.resolve(decoded),
      },
    })
    const { errorCode, offsets } = answer as Answer
    const codes = [errorCode, ...offsets.map((one) => one.errorCode)].filter((code) => code !== 0)
    if (codes.length === 0) return offsets
    if (codes.some((code) => code !== UNSTABLE_OFFSET_COMMIT) || clock.monotonic() > until) {
      throw new RetrylineError(
        'RETRYLINE_CONNECT',
        `the broker does not tell the offsets of '${groupId}' (${codes[0]})`,
      )
    }
    await new Promise<void>((resolve) => clock.after(LOOK_EVERY, resolve))
  }
}

export interface Answer {
  readonly errorCode: number
  readonly offsets: readonly (CommittedOffset & { readonly errorCode: number })[]
}

/** Behind kafkajs's own header, of which this version needs one byte more: no tagged fields. */
export function encode(groupId: string, partitions: readonly TopicPartition[]): Buffer {
  const byTopic = new Map<string, number[]>()
  for (const { topic, partition } of partitions) byTopic.set(topic, [...(byTopic.get(topic) ?? []), partition])
  const topics = [...byTopic].map(([topic, list]) =>
    Buffer.concat([text(topic), varint(list.length + 1), ...list.map(int32), NO_TAGS]),
  )
  const requireStable = Buffer.from([1])
  return Buffer.concat([NO_TAGS, text(groupId), varint(topics.length + 1), ...topics, requireStable, NO_TAGS])
}

/** What comes behind the correlation id. */
export function decode(payload: Buffer): Answer {
  const read = new Reader(payload)
  read.tags()
  read.int32() // throttle time
  const offsets: (CommittedOffset & { errorCode: number })[] = []
  for (let topics = read.varint() - 1; topics > 0; topics--) {
    const topic = read.text() ?? ''
    for (let partitions = read.varint() - 1; partitions > 0; partitions--) {
      const partition = read.int32()
      const offset = read.int64()
      read.int32() // leader epoch
      const metadata = read.text()
      offsets.push({ topic, partition, offset, metadata, errorCode: read.int16() })
      read.tags()
    }
    read.tags()
  }
  return { offsets, errorCode: read.int16() }
}

const NO_TAGS = Buffer.from([0])

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return Buffer.from([...bytes, rest])
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([varint(bytes.length + 1), bytes])
}

class Reader {
  #at = 0

  constructor(readonly bytes: Buffer) {}

  int16(): number {
    return this.bytes.readInt16BE(this.#step(2))
  }

  int32(): number {
    return this.bytes.readInt32BE(this.#step(4))
  }

  int64(): bigint {
    return this.bytes.readBigInt64BE(this.#step(8))
  }

  varint(): number {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = this.bytes.readUInt8(this.#step(1))
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }

  text(): string | null {
    const length = this.varint() - 1
    if (length < 0) return null
    const at = this.#step(length)
    return this.bytes.toString('utf8', at, at + length)
  }

  tags(): void {
    for (let count = this.varint(); count > 0; count--) {
      this.varint()
      this.#step(this.varint())
    }
  }

  #step(by: number): number {
    const at = this.#at
    this.#at += by
    return at
  }
}
