/**
 * The two byte formats of Kafka's consumer protocol that an assigner reads and writes: what a member subscribes to, and
 * what it is given. Both are version 0 (Kafka protocol guide, "Consumer Embedded Protocol"), as kafkajs writes them.
 */

export interface MemberMetadata {
  topics: string[]
  userData: Buffer
}

export function encodeMemberMetadata(version: number, topics: readonly string[], userData: Buffer): Buffer {
  return Buffer.concat([int16(version), int32(topics.length), ...topics.map(string), int32(userData.length), userData])
}

export function decodeMemberMetadata(buffer: Buffer): MemberMetadata {
  const reader = new Reader(buffer)
  reader.int16()
  return { topics: reader.array(() => reader.string()), userData: reader.bytes() }
}

export function encodeMemberAssignment(version: number, assignment: ReadonlyMap<string, readonly number[]>): Buffer {
  const topics = [...assignment].map(([topic, partitions]) =>
    Buffer.concat([string(topic), int32(partitions.length), ...partitions.map(int32)]),
  )
  return Buffer.concat([int16(version), int32(topics.length), ...topics, int32(0)])
}

class Reader {
  #at = 0
  constructor(private readonly buffer: Buffer) {}

  int16(): number {
    this.#at += 2
    return this.buffer.readInt16BE(this.#at - 2)
  }

  int32(): number {
    this.#at += 4
    return this.buffer.readInt32BE(this.#at - 4)
  }

  bytes(): Buffer {
    // A member of another client may send no user data at all (-1) or leave the field out.
    const length = this.#at < this.buffer.length ? this.int32() : 0
    return this.#slice(Math.max(0, length))
  }

  string(): string {
    // A negative length is Kafka's null; it must not move the reader back, or garbage could keep it busy for ever.
    return this.#slice(Math.max(0, this.int16())).toString()
  }

  array<T>(item: () => T): T[] {
    return Array.from({ length: Math.max(0, this.int32()) }, item)
  }

  #slice(length: number): Buffer {
    this.#at += length
    return this.buffer.subarray(this.#at - length, this.#at)
  }
}

function int16(value: number): Buffer {
  const buffer = Buffer.alloc(2)
  buffer.writeInt16BE(value)
  return buffer
}

function int32(value: number): Buffer {
  const buffer = Buffer.alloc(4)
  buffer.writeInt32BE(value)
  return buffer
}

function string(text: string): Buffer {
  return Buffer.concat([int16(Buffer.byteLength(text)), Buffer.from(text)])
}
