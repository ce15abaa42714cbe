import type { Header, HeaderValue, Message, Rec } from './record'

/** The headers of a message as kafkajs gives and takes them: a repeated name has an array. */
export interface KafkaHeaders {
  [name: string]: HeaderValue
}

/** What kafkajs can write: never null, undefined or a number, not even inside an array. */
export interface WritableHeaders {
  [name: string]: Buffer | Buffer[]
}

// kafkajs folds headers into a plain object, so a name that every object inherits (`constructor`, `toString`,
// `__proto__`) comes back as an array that begins with the inherited value. Looked up by the same means as it does.
const plain: Record<string, unknown> = {}

/**
 * Reads headers as kafkajs decodes them into a list: own names only, a repeated name once for each value, in order.
 * Text becomes its UTF-8 bytes; null stays null. `undefined` cannot come from a broker and means that there is no such
 * header. Anything that Kafka cannot carry (a function, an object) is left out. Never throws.
 */
export function fromKafkaHeaders(headers: KafkaHeaders | null | undefined): Header[] {
  const list: Header[] = []
  if (headers === null || headers === undefined) return list
  for (const name of Object.keys(headers)) {
    const value: unknown = headers[name]
    if (!Array.isArray(value)) {
      add(list, name, value)
      continue
    }
    const inherited = plain[name]
    const first = inherited !== undefined && value[0] === inherited ? 1 : 0
    for (let i = first; i < value.length; i++) add(list, name, value[i])
  }
  return list
}

function add(list: Header[], name: string, value: unknown): void {
  if (value === null || Buffer.isBuffer(value)) list.push([name, value])
  else if (typeof value === 'string') list.push([name, Buffer.from(value)])
  else if (value instanceof Uint8Array) list.push([name, Buffer.from(value.buffer, value.byteOffset, value.byteLength)])
}

/**
 * Headers in the shape that kafkajs writes: an object without a prototype, so that `__proto__` and `constructor` are
 * names like any other. A null value is written as empty, since kafkajs throws on it (the envelope names those).
 */
export function toKafkaHeaders(headers: readonly Header[]): WritableHeaders {
  const object = Object.create(null) as WritableHeaders
  for (const [name, bytes] of headers) {
    const value = bytes ?? EMPTY
    const before = object[name]
    if (before === undefined) object[name] = value
    else if (Array.isArray(before)) before.push(value)
    else object[name] = [before, value]
  }
  return object
}

const EMPTY = Buffer.alloc(0)

/** Headers in the shape in which kafkajs gives them to a handler: a plain object, null headers as null. */
export function toMessageHeaders(headers: readonly Header[]): { [name: string]: HeaderValue } {
  const object: { [name: string]: HeaderValue } = {}
  for (const [name, value] of headers) {
    if (!Object.hasOwn(object, name)) {
      // An assignment would set the prototype.
      if (name === '__proto__') Object.defineProperty(object, name, { value, ...PLAIN })
      else object[name] = value
      continue
    }
    const before = object[name]
    if (Array.isArray(before)) before.push(value)
    else {
      const both = [before as Buffer | null, value]
      if (name === '__proto__') Object.defineProperty(object, name, { value: both, ...PLAIN })
      else object[name] = both
    }
  }
  return object
}

const PLAIN = { configurable: true, enumerable: true, writable: true }

/**
 * Headers that user code may do with what it likes: the copy of a failed record is made from the message's own. Many handlers
 * put text or parsed values in place of the bytes. An empty object where there are none (records of before Kafka 0.11).
 */
export function copyHeaders(headers: Message['headers']): NonNullable<Message['headers']> {
  const copy = { ...headers }
  for (const name in copy) {
    const value = copy[name]
    if (Array.isArray(value)) copy[name] = [...value]
  }
  return copy
}

/** A message as our record. `message.offset` must be decimal text, as every client gives it. */
export function toRec(topic: string, partition: number, message: Message): Rec {
  const timestamp = Number(message.timestamp)
  return {
    topic,
    partition,
    offset: BigInt(message.offset),
    timestamp: Number.isInteger(timestamp) ? timestamp : -1,
    key: message.key,
    value: message.value,
    headers: fromKafkaHeaders(message.headers),
  }
}

/** The first value of a name; `undefined` if there is none, `null` for a null header. */
export function firstHeader(headers: readonly Header[], name: string): Buffer | null | undefined {
  return headers.find((header) => header[0] === name)?.[1]
}

/** The last value of a name; `undefined` if there is none, `null` for a null header. */
export function lastHeader(headers: readonly Header[], name: string): Buffer | null | undefined {
  for (let i = headers.length - 1; i >= 0; i--) {
    const header = headers[i]
    if (header?.[0] === name) return header[1]
  }
  return undefined
}

/** Every value of a name, in order. */
export function allHeaders(headers: readonly Header[], name: string): (Buffer | null)[] {
  return headers.filter((header) => header[0] === name).map((header) => header[1])
}
