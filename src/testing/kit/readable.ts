/** Records as the author of a test wants to read them: text and JSON instead of bytes. */
import { isDeepStrictEqual } from 'node:util'
import type { FakeRecord } from '../create-fake-kafka'
import { quoted, showBytes } from '../show'

export interface Readable {
  /** Text; a Buffer where the bytes are no UTF-8. */
  readonly key: string | Buffer | null
  /** What the JSON says where it is JSON; else text; else a Buffer. Null for a tombstone. */
  readonly value: unknown
  /** By name; a repeated name has a list. */
  readonly headers: Readonly<Record<string, HeaderText | HeaderText[]>>
  /** Key and value as they stand on the topic. */
  readonly bytes: { readonly key: Buffer | null; readonly value: Buffer | null }
}

type HeaderText = string | Buffer | null

export function readable(record: Pick<FakeRecord, 'key' | 'value' | 'headers'>): Readable {
  const { key, value, headers } = record
  const byName = new Map<string, HeaderText | HeaderText[]>()
  for (const [name, bytes] of headers) {
    const before = byName.get(name)
    if (before === undefined) byName.set(name, text(bytes))
    else if (Array.isArray(before)) before.push(text(bytes))
    else byName.set(name, [before, text(bytes)])
  }
  // Defines its properties, so that `__proto__` is a name like any other.
  return { key: text(key), value: json(value), headers: Object.fromEntries(byName), bytes: { key, value } }
}

function text(bytes: Buffer | null): HeaderText {
  if (bytes === null) return null
  const decoded = bytes.toString('utf8')
  return Buffer.from(decoded).equals(bytes) ? decoded : bytes
}

function json(bytes: Buffer | null): unknown {
  const decoded = text(bytes)
  if (typeof decoded !== 'string') return decoded
  try {
    return JSON.parse(decoded) as unknown
  } catch {
    return decoded
  }
}

/** Whether bytes are what a test asks for: text or bytes as they are, an object by what the JSON says. */
export function isBytes(bytes: Buffer | null, wanted: unknown): boolean {
  if (wanted === null || bytes === null) return bytes === wanted
  if (typeof wanted === 'string') return bytes.equals(Buffer.from(wanted))
  if (ArrayBuffer.isView(wanted)) {
    return bytes.equals(Buffer.from(wanted.buffer, wanted.byteOffset, wanted.byteLength))
  }
  // As JSON both: what JSON leaves out (undefined) is not asked for.
  return isDeepStrictEqual(json(bytes), JSON.parse(JSON.stringify(wanted)))
}

/** What a test asked for, in the message of its failure. */
export function showWanted(wanted: unknown): string {
  if (typeof wanted === 'string') return quoted(wanted)
  if (wanted instanceof Uint8Array) return showBytes(Buffer.from(wanted))
  if (typeof wanted === 'object' && wanted !== null && Object.prototype.toString.call(wanted) !== '[object RegExp]') {
    return JSON.stringify(wanted)
  }
  return String(wanted)
}
