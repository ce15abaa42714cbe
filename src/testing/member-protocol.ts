/**
 * What members tell each other through the broker: Kafka's ConsumerProtocol, as bytes. Subscriptions and assignments
 * written by kafkajs, by its AssignerProtocol or by another client can be read here, and the other way round.
 */
import type { AssignerFactory } from './types'

export interface MemberMetadata {
  version: number
  topics: string[]
  userData: Buffer | null
}

export interface MemberAssignment {
  version: number
  assignment: Record<string, number[]>
  userData: Buffer | null
}

class Writer {
  private readonly parts: Buffer[] = []

  int16(value: number): this {
    const bytes = Buffer.alloc(2)
    bytes.writeInt16BE(value)
    return this.put(bytes)
  }

  int32(value: number): this {
    const bytes = Buffer.alloc(4)
    bytes.writeInt32BE(value)
    return this.put(bytes)
  }

  text(value: string): this {
    const bytes = Buffer.from(value)
    return this.int16(bytes.length).put(bytes)
  }

  bytes(value: Buffer | null): this {
    return value === null ? this.int32(-1) : this.int32(value.length).put(value)
  }

  list<T>(values: readonly T[], write: (value: T) => void): this {
    this.int32(values.length)
    values.forEach(write)
    return this
  }

  end(): Buffer {
    return Buffer.concat(this.parts)
  }

  private put(bytes: Buffer): this {
    this.parts.push(bytes)
    return this
  }
}

class Reader {
  private at = 0

  constructor(private readonly buffer: Buffer) {}

  get left(): number {
    return this.buffer.length - this.at
  }

  int16(): number {
    this.at += 2
    return this.buffer.readInt16BE(this.at - 2)
  }

  int32(): number {
    this.at += 4
    return this.buffer.readInt32BE(this.at - 4)
  }

  text(): string {
    const length = this.int16()
    this.at += length
    return this.buffer.toString('utf8', this.at - length, this.at)
  }

  bytes(): Buffer | null {
    const length = this.int32()
    if (length < 0) return null
    this.at += length
    return Buffer.from(this.buffer.subarray(this.at - length, this.at))
  }

  list<T>(read: () => T): T[] {
    return Array.from({ length: Math.max(0, this.int32()) }, read)
  }
}

const NO_DATA = Buffer.alloc(0)

export function encodeMetadata(topics: readonly string[], version = 0, userData: Buffer | null = NO_DATA): Buffer {
  const writer = new Writer().int16(version)
  return writer
    .list(topics, (topic) => writer.text(topic))
    .bytes(userData)
    .end()
}

export function decodeMetadata(buffer: Buffer): MemberMetadata {
  const reader = new Reader(buffer)
  return { version: reader.int16(), topics: reader.list(() => reader.text()), userData: reader.bytes() }
}

export function encodeAssignment(
  assignment: Readonly<Record<string, readonly number[]>>,
  version = 0,
  userData: Buffer | null = NO_DATA,
): Buffer {
  const writer = new Writer().int16(version)
  return writer
    .list(Object.entries(assignment), ([topic, partitions]) => {
      writer.text(topic).list(partitions, (partition) => writer.int32(partition))
    })
    .bytes(userData)
    .end()
}

/** `null` where there is nothing to read: the leader left this member out. */
export function decodeAssignment(buffer: Buffer): MemberAssignment | null {
  const reader = new Reader(buffer)
  if (reader.left < 2) return null
  const version = reader.int16()
  const topics = reader.list(() => [reader.text(), reader.list(() => reader.int32())] as const)
  return { version, assignment: Object.fromEntries(topics), userData: reader.bytes() }
}

/**
 * The default assigner, under kafkajs's name: partitions dealt out to the members by sorted id, whatever each member
 * itself subscribed to.
 */
export const roundRobin: AssignerFactory = ({ cluster }) => ({
  name: 'RoundRobinAssigner',
  version: 0,
  async assign({ members, topics }) {
    const ids = members.map(({ memberId }) => memberId).sort()
    const shares = new Map<string, Record<string, number[]>>()
    const partitions = topics.flatMap((topic) =>
      cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => ({ topic, partitionId })),
    )
    partitions.forEach(({ topic, partitionId }, i) => {
      const id = ids[i % ids.length] ?? ''
      const share = shares.get(id) ?? (Object.create(null) as Record<string, number[]>)
      shares.set(id, share)
      ;(share[topic] ??= []).push(partitionId)
    })
    return [...shares].map(([memberId, share]) => ({ memberId, memberAssignment: encodeAssignment(share) }))
  },
  protocol({ topics }) {
    return { name: 'RoundRobinAssigner', metadata: encodeMetadata(topics) }
  },
})
