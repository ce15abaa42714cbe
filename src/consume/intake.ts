/** Fetched messages into what stands in a lane: size, order, and on a retry topic what the headers say. */
import type { Settings } from '../config'
import { HEADER } from '../envelope'
import type { Emitter } from '../observe'
import type { Clock } from '../ports'
import { type HeaderValue, type Message, toRec } from '../record'
import { openRetry } from '../route'
import type { Topology } from '../topology'
import type { Tracked } from './commit-tracker'
import type { Entry, Lane } from './lane'
import type { LaneQueue } from './lane-queue'
import { SerialQueue } from './serial-queue'

/** What a record costs in memory beyond its bytes: objects of the client and of ours. Bytes; a rough figure. */
const RECORD_OVERHEAD = 512

export interface Intake {
  readonly ordering: Settings['ordering']
  /** Whether the lane is one of a retry topic. */
  readonly gated: boolean
  readonly topology: Topology
  readonly emitter: Emitter
  readonly clock: Clock
  /** The record is done with: what waits for room in the lane may go on. */
  readonly settled: (lane: Lane, entry: Entry) => void
}

/** `messages` are the lane's from now on. `tail`: the offset behind the batch. */
export function takeBatch(intake: Intake, lane: Lane, messages: Message[], tail: bigint): void {
  if (lane.queue instanceof SerialQueue) takeSerial(lane, lane.queue, messages, tail)
  else takeEach(intake, lane, lane.queue, messages, tail)
}

function takeEach(
  intake: Intake,
  lane: Lane,
  queue: Pick<LaneQueue<Entry>, 'push'>,
  messages: readonly Message[],
  tail: bigint,
): void {
  const now = intake.gated ? intake.clock.now() : 0
  const last = messages.length - 1
  for (let i = 0; i <= last; i++) {
    const entry = makeEntry(intake, lane, messages[i]!, i === last ? tail : undefined)
    lane.tracker.add(entry)
    if (isDone(intake, lane, entry) || (intake.gated && isForOthers(intake, lane, entry, now))) {
      // Done with as soon as what stands before it is.
      lane.tracker.settle(entry)
      lane.dirty = true
      continue
    }
    lane.held++
    lane.bytes += entry.bytes
    queue.push(entry)
  }
}

function makeEntry(intake: Intake, lane: Lane, message: Message, tail: bigint | undefined): Open<Entry> {
  return {
    message,
    offset: message.offset,
    bytes: sizeOfMessage(message),
    seq: lane.added++,
    orderKey: orderKey(intake.ordering, message.key),
    dueAt: 0,
    settled: false,
    tail,
    opened: undefined as Entry['opened'],
    replayed: !intake.gated && isReplay(message),
  }
}

/** Whether the record was handled before the group came to this lane, by what the commit says. */
function isDone({ emitter }: Intake, lane: Lane, { offset }: Tracked): boolean {
  if (lane.done === undefined) return false
  const at = BigInt(offset)
  if (lane.done.isPast(at)) {
    lane.done = undefined
    return false
  }
  if (!lane.done.has(at)) return false
  const { tier, topic, partition } = lane
  emitter.emit('skipped', { tier, topic, partition, offset, why: 'done' })
  return true
}

/** Puts a batch into a lane that makes its entries only as they are taken. */
export function takeSerial(lane: Lane, queue: SerialQueue<Entry>, messages: Message[], tail: bigint): void {
  let bytes = 0
  let replayed = false
  for (const { key, value, headers } of messages) {
    bytes += RECORD_OVERHEAD + (key?.length ?? 0) + (value?.length ?? 0)
    for (const name in headers) {
      bytes += name.length + sizeOfHeader(headers[name])
      // Found in passing: a look-up in the headers of every record would cost more than all the rest of this.
      if (name === HEADER.replayed) replayed = true
    }
  }
  queue.push({ messages, tail, bytesEach: bytes / messages.length, replayed })
  lane.held += messages.length
  lane.bytes += bytes
}

/** The queue of such a lane. */
export function serialQueue(intake: Intake, lane: Lane): SerialQueue<Entry> {
  return new SerialQueue((message, { bytesEach, replayed }, tail) => {
    const entry: Entry = {
      message,
      offset: message.offset,
      bytes: bytesEach,
      seq: lane.added++,
      orderKey: '',
      dueAt: 0,
      settled: false,
      tail,
      opened: undefined,
      replayed,
    }
    lane.tracker.add(entry)
    if (lane.done === undefined || !isDone(intake, lane, entry)) return entry
    intake.settled(lane, entry)
    return undefined
  })
}

function isReplay({ headers }: Message): boolean {
  return headers?.[HEADER.replayed] !== undefined
}

function sizeOfMessage({ key, value, headers }: Message): number {
  let bytes = RECORD_OVERHEAD + (key?.length ?? 0) + (value?.length ?? 0)
  for (const name in headers) bytes += name.length + sizeOfHeader(headers[name])
  return bytes
}

function orderKey(ordering: Settings['ordering'], key: Buffer | null): string | undefined {
  if (ordering === 'partition') return ''
  return ordering === 'key' && key !== null ? key.toString('latin1') : undefined
}

type Open<T> = { -readonly [K in keyof T]: T[K] }

/** Reads what the headers of a retry say. `now`: ms since the epoch. */
function isForOthers({ topology, emitter }: Intake, lane: Lane, entry: Open<Entry>, now: number): boolean {
  const { tier, topic, partition } = lane
  const at = { tier, topic, partition, offset: entry.offset }
  const opened = openRetry(toRec(topic, partition, entry.message), topology, now)
  if (opened.kind === 'skip') {
    emitter.emit('skipped', { ...at, why: 'other-group', group: opened.group })
    return true
  }
  if (opened.problems.length > 0) emitter.emit('envelope', { ...at, problems: opened.problems })
  entry.opened = opened
  entry.dueAt = opened.kind === 'reject' ? 0 : (opened.dueAt ?? 0)
  return false
}

function sizeOfHeader(value: HeaderValue): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + sizeOfHeader(one), 0)
  return value?.length ?? 0
}
