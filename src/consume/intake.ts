/** Fetched messages into what stands in a lane: size, order, and on a retry topic what the headers say. */
import type { Settings } from '../config'
import { HEADER } from '../envelope'
import type { Emitter } from '../observe'
import type { Clock, FetchedBatch } from '../ports'
import { type Message, toRec } from '../record'
import { openRetry } from '../route'
import type { Topology } from '../topology'
import type { Tracked } from './commit-tracker'
import { detach, pinsTooMuch } from './detach'
import type { Entry, Lane } from './lane'
import type { LaneQueue } from './lane-queue'
import { fit, sizeOfMessage, type Room } from './room'
import { type SerialBatch, SerialQueue } from './serial-queue'

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

/** A batch, or as much of it as there is room for; `messages` are the lane's from now on. Returns the offset behind what was taken, undefined where nothing was. */
export function takeBatch(
  intake: Intake,
  lane: Lane,
  { messages, lastOffset }: Pick<FetchedBatch, 'messages' | 'lastOffset'>,
  room: Room,
): bigint | undefined {
  const { count, bytes, payload, replayed } = fit(messages, room, lane.held === 0)
  const whole = count === messages.length
  if (count === 0 && !whole) return undefined
  const next = whole ? lastOffset + 1n : BigInt(messages[count - 1]!.offset) + 1n
  const fitting = whole ? messages : messages.slice(0, count)
  // What is left of a batch comes again in another response, and what waits on a retry topic may wait for days.
  const waits = intake.gated && !isDue(fitting, intake.clock.now())
  const alone = !whole || waits || pinsTooMuch(lane, fitting, payload, room)
  const own = alone ? detach(fitting) : fitting
  if (lane.queue instanceof SerialQueue) takeSerial(lane, lane.queue, { messages: own, tail: next, replayed }, bytes)
  else takeEach(intake, lane, lane.queue, own, next)
  return next
}

/** By the last of them, and only to know what is worth a copy: they stand in the order in which they become due, but for jitter. */
function isDue(messages: readonly Message[], now: number): boolean {
  const dueAt = messages.at(-1)?.headers?.[HEADER.dueAt]
  return Buffer.isBuffer(dueAt) && Number(dueAt.toString('latin1')) <= now
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
    place: 0,
    opened: undefined as Entry['opened'],
    openedAt: undefined as Entry['openedAt'],
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
function takeSerial(lane: Lane, queue: SerialQueue<Entry>, batch: Omit<SerialBatch, 'bytesEach'>, bytes: number): void {
  const { length } = batch.messages
  queue.push({ ...batch, bytesEach: bytes / length })
  lane.held += length
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
      place: 0,
      opened: undefined,
      openedAt: undefined,
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
  entry.dueAt = opened.kind === 'reject' ? 0 : (opened.dueAt ?? 0)
  // What the headers say costs more memory than the record: of one that waits they are read again.
  if (entry.dueAt <= now) entry.opened = opened
  else entry.openedAt = now
  return false
}

/** Reads the headers of a record that has waited again, now that it is to start; the same as before comes of it. */
export function openAgain({ topology }: Intake, lane: Lane, entry: Entry): void {
  if (entry.openedAt === undefined || entry.opened !== undefined) return
  const opened = openRetry(toRec(lane.topic, lane.partition, entry.message), topology, entry.openedAt)
  if (opened.kind !== 'skip') entry.opened = opened
}
