/**
 * How much may be in memory: by group, shared out evenly among its lanes. What a record costs there is what it weighs on the
 * wire and the objects of the client and of ours around it.
 */
import type { Settings } from '../config'
import { HEADER } from '../envelope'
import type { HeaderValue, Message } from '../record'
import type { Lane } from './lane'

/** Settled records beyond the frontier are small; so many times the lane's share of records may pile up behind one. */
const SPAN = 10
/** What is kept of one of these. Bytes. */
const SETTLED = 200
/** What a record costs beyond its bytes, and each of its headers. Bytes, as measured with kafkajs 2.2 on Node 20. */
const RECORD_OVERHEAD = 640
const HEADER_OVERHEAD = 104

export type Limits = Pick<Settings, 'maxBufferedRecords' | 'maxBufferedBytes'>

/** What a lane may still take; negative where it has more than its share. */
export interface Room {
  readonly records: number
  readonly bytes: number
  /** The lane's share. */
  readonly of: number
}

/** What is left of the lane's share, or of a `part` of it; a lane alone has it all. */
export function roomOf(lane: Lane, lanes: number, limits: Limits, part = 1): Room {
  const records = Math.max(1, limits.maxBufferedRecords / lanes) * part
  const bytes = (limits.maxBufferedBytes / lanes) * part
  return { records: records - lane.held, bytes: bytes - lane.bytes - lane.tracker.settledBeyond * SETTLED, of: bytes }
}

/** Whether the lane has more than its share, or than a `part` of it. */
export function exceedsShare(lane: Lane, lanes: number, limits: Limits, part: number): boolean {
  const { records, bytes } = roomOf(lane, lanes, limits, part)
  return records < 0 || bytes < 0 || lane.tracker.length > (records + lane.held) * SPAN
}

/** How many of these, from the first on, fit into the room; and what they cost. */
export interface Fit {
  readonly count: number
  readonly bytes: number
  /** Of these, keys, values and headers themselves. */
  readonly payload: number
  /** Whether any of them may have been replayed. */
  readonly replayed: boolean
}

/** A lane that is empty takes one record however large it is. */
export function fit(messages: readonly Message[], room: Room, empty: boolean): Fit {
  let [bytes, payload, count] = [0, 0, 0]
  let replayed = false
  for (const { key, value, headers } of messages) {
    let own = (key?.length ?? 0) + (value?.length ?? 0)
    let cost = RECORD_OVERHEAD + own
    for (const name in headers) {
      const size = sizeOfHeader(headers[name])
      cost += name.length + size
      own += size - HEADER_OVERHEAD
      // Found in passing: a look-up in the headers of every record would cost more than all the rest of this.
      if (name === HEADER.replayed) replayed = true
    }
    if ((bytes + cost > room.bytes || count >= room.records) && !(empty && count === 0)) break
    bytes += cost
    payload += own
    count++
  }
  return { count, bytes, payload, replayed }
}

export function fits(message: Message, room: Room, { held }: Pick<Lane, 'held'>): boolean {
  return fit([message], room, held === 0).count === 1
}

/** Bytes in memory. */
export function sizeOfMessage({ key, value, headers }: Message): number {
  let bytes = RECORD_OVERHEAD + (key?.length ?? 0) + (value?.length ?? 0)
  for (const name in headers) bytes += name.length + sizeOfHeader(headers[name])
  return bytes
}

function sizeOfHeader(value: HeaderValue): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + sizeOfHeader(one), 0)
  return HEADER_OVERHEAD + (value?.length ?? 0)
}

/** A response is decoded whole, however far it expands, and the objects that come of it are many: so a small part of the room. */
const OF_ROOM = 16
const MOST_OF_ALL = 4 * 1024 * 1024
const MOST_OF_ONE = 384 * 1024

/**
 * A fetch may bring more than there is room for by one response, so that is kept to a part of the room; and where a member
 * may come to hold many partitions, what it brings of each is kept to a part of a share. What does not fit is thrown away
 * and fetched again.
 */
export function fetchSizes(
  { maxBufferedBytes }: Limits,
  partitions: number,
): { maxBytes: number; maxBytesPerPartition: number } {
  const maxBytes = clamp(64 * 1024, Math.floor(maxBufferedBytes / OF_ROOM), MOST_OF_ALL)
  const share = Math.floor(maxBufferedBytes / Math.max(1, partitions))
  return { maxBytes, maxBytesPerPartition: clamp(32 * 1024, Math.floor(share / 2), Math.min(MOST_OF_ONE, maxBytes)) }
}

function clamp(least: number, value: number, most: number): number {
  return Math.max(least, Math.min(value, most))
}
