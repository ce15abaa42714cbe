/**
 * Records that let go of the fetch response they came in. kafkajs cuts keys, values and headers out of the response (or out
 * of the batch, once it is decompressed) without a copy, so a single one that waits keeps all of it in memory: up to 10 MiB
 * of other partitions' records, or what does not fit in here.
 */
import type { HeaderValue, Message } from '../record'
import type { Lane } from './lane'
import type { Room } from './room'

/** A response that is mostly the lane's own goes as its records go. */
const MOSTLY = 2

/**
 * Whether what the records came in is more than the lane may keep, beside them. `payload`: the bytes of their own keys, values
 * and headers. Counted are responses since the lane was last empty, whether they are gone meanwhile or not.
 */
export function pinsTooMuch(lane: Lane, messages: readonly Message[], payload: number, room: Room): boolean {
  if (lane.held === 0) lane.pinned = 0
  const backing = backingOf(messages)
  if (backing <= MOSTLY * payload) return false
  if (lane.pinned + backing > room.of) return true
  lane.pinned += backing
  return false
}

function backingOf(messages: readonly Message[]): number {
  for (const { key, value } of messages) {
    const buffer = value ?? key
    if (buffer !== null && buffer.length > 0) return buffer.buffer.byteLength
  }
  return 0
}

/** All in one piece of memory, which goes when the last of them does. */
export function detach(messages: readonly Message[]): Message[] {
  let total = 0
  for (const { key, value, headers } of messages) {
    total += (key?.length ?? 0) + (value?.length ?? 0)
    for (const name in headers) total += lengthOf(headers[name])
  }
  const memory = Buffer.allocUnsafeSlow(total)
  let at = 0
  const copy = (from: Buffer): Buffer => {
    memory.set(from, at)
    return memory.subarray(at, (at += from.length))
  }
  const copyHeader = (value: HeaderValue): HeaderValue => {
    if (Array.isArray(value)) return value.map((one) => copyHeader(one) as Exclude<HeaderValue, unknown[]>)
    return Buffer.isBuffer(value) ? copy(value) : value
  }
  return messages.map((message) => {
    const { key, value, headers } = message
    const own: Message = { ...message, key: key && copy(key), value: value && copy(value) }
    // Defines its properties, where an assignment to `__proto__` would set the prototype.
    if (headers) own.headers = Object.fromEntries(Object.keys(headers).map((name) => [name, copyHeader(headers[name])]))
    return own
  })
}

function lengthOf(value: HeaderValue): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + lengthOf(one), 0)
  return Buffer.isBuffer(value) ? value.length : 0
}
