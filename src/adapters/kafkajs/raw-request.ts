/**
 * Requests that kafkajs does not know, sent over its own connections: behind kafkajs's header, of which a flexible version
 * needs one byte more (no tagged fields), stands what is encoded here.
 */

export interface RawBroker {
  readonly versions?: Record<number, { maxVersion: number } | undefined> | null
  readonly connectionPool?: { send(request: RawRequest): Promise<unknown> }
}
interface RawRequest {
  request: { apiKey: number; apiVersion: number; apiName: string; encode(): Promise<{ buf: Buffer; buffer: Buffer }> }
  response: { decode(payload: Buffer): Promise<unknown>; parse(decoded: unknown): Promise<unknown> }
}
export interface Api<T> {
  readonly key: number
  readonly version: number
  readonly name: string
  /** Of what comes behind the correlation id. */
  decode(payload: Buffer): T
}

/** Undefined where the broker, or the client, does not know the request. */
export async function askBroker<T>(
  { versions, connectionPool }: RawBroker,
  { key, version, name, decode }: Api<T>,
  body: Buffer,
): Promise<T | undefined> {
  if (connectionPool === undefined || (versions?.[key]?.maxVersion ?? -1) < version) return undefined
  const answer = await connectionPool.send({
    request: {
      apiKey: key,
      apiVersion: version,
      apiName: name,
      encode: () => Promise.resolve({ buf: body, buffer: body }),
    },
    response: {
      // kafkajs looks into what is decoded, so it must be an object.
      decode: (payload) => Promise.resolve({ value: decode(payload) }),
      parse: (decoded) => Promise.resolve(decoded),
    },
  })
  return (answer as { value: T }).value
}

export const NO_TAGS = Buffer.from([0])

export function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return Buffer.from([...bytes, rest])
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

export function text(value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([varint(bytes.length + 1), bytes])
}

export class Reader {
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
