/**
 * Where a lane begins, and whether a kept one may go on: asked of the broker after every assignment.
 *
 * - A partition with a committed offset begins there, and passes over what the commit says is done beyond it. What it says of
 *   deaths is for the guard (crash-guard.ts).
 * - One without begins at its beginning, with `startFrom: 'earliest'` and on every tier; the position is fixed, sought and
 *   committed, so that a rebalance before the first record cannot move it.
 * - With `latest` or a time, the member that holds the first partition of a topic without any commit decides for all of
 *   its partitions, and commits for all; the others wait until they see it. (Not the group's leader: that may hold nothing
 *   of the topic, or not read it at all.) A partition without a commit beside siblings that have one was added later, and
 *   is read from its beginning.
 * - A kept lane goes on if the broker holds what this lane last committed, to the letter; else somebody else was at work meanwhile, and
 *   the lane is dropped and begun anew at the broker's offset.
 * - A kept lane whose topic was deleted and made anew (the broker has dropped our commit with it, or the log ends below our
 *   position) is begun anew at the beginning: all that stands there now is new.
 *
 * Must never happen: a record started, or an offset committed, between an assignment and its answer; an answer used for a
 * later assignment than it was asked for.
 */
import { errorText, type Emitter } from '../observe'
import type { CommitEntry, CommittedOffset, LogRange, TopicAdmin } from '../ports'
import { NO_MARKS } from './crash-marks'
import { unpackCommit, type Told } from './done-beyond'
import { laneKey, type Commit, type Lane } from './lane'
import { isSame } from './lane-commit'

const RETRY = { firstMs: 200, maxMs: 5_000 }
/** How often a member looks whether another has decided, ms. */
const LOOK_MS = 100

/**
 * What kafkajs commits by itself, and sooner than we can look, where the group's offset has left the log. The group is
 * not new then, and what it had not read below the log's beginning is gone.
 */
export const RESET = -2n

export interface OpeningOptions {
  readonly admin: TopicAdmin
  readonly emitter: Emitter
  readonly groupId: string
  readonly startFrom: 'earliest' | 'latest' | number
  /** Groups whose records this one takes over: where it has no offset of its own, it begins where they had come to. */
  readonly formerGroups: readonly string[]
  /** The assignment that is current; an answer for another one is thrown away. */
  readonly epoch: () => number
  readonly stopped: () => boolean
  /** Resolves after so long, ms, or when the group stops. */
  wait(ms: number): Promise<void>
  /** Whether the client can commit: the decision is a commit. */
  ready(): boolean
  commit(entries: readonly CommitEntry[]): Promise<void>
  /** What must be done before the offsets of these may be read; the lanes for which it is. Exactly-once only. */
  prepare?(lanes: readonly Lane[]): Promise<readonly Lane[]>
  /** In place of a plain look-up, for these lanes; undefined where the client cannot ask so. */
  settledOffsets(lanes: readonly Lane[]): Promise<readonly CommittedOffset[] | undefined>
  open(lane: Lane, position: bigint, committed: Commit | undefined, told: Told): void
  goOn(lane: Lane): void
  reopen(lane: Lane, committed: Commit, told: Told): void
  /** The lane's log is another one than it was, and begins at `low`. */
  remade(lane: Lane, low: bigint): void
}

export async function openLanes(options: OpeningOptions, all: readonly Lane[]): Promise<void> {
  const { emitter, epoch, stopped } = options
  const asked = epoch()
  const stale = (): boolean => epoch() !== asked || stopped()
  let lanes = all
  for (let failures = 0; !stale();) {
    let wait = LOOK_MS
    try {
      lanes = await openSome(options, lanes, stale)
      if (lanes.length === 0) return
    } catch (error) {
      emitter.emit('problem', { where: `reading the offsets of ${options.groupId}`, error: errorText(error) })
      wait = Math.min(RETRY.firstMs * 2 ** failures++, RETRY.maxMs)
    }
    if (stale()) return
    await options.wait(wait)
  }
}

/** Returns the lanes that must wait for a decision. */
async function openSome(options: OpeningOptions, all: readonly Lane[], stale: () => boolean): Promise<readonly Lane[]> {
  const asked = all.filter(isUnknown)
  const lanes = options.prepare ? await options.prepare(asked) : asked
  if (stale()) return []
  const waiting: Lane[] = asked.filter((lane) => !lane.closed && !lanes.includes(lane))
  if (lanes.length === 0) return waiting
  const topics = [...new Set(lanes.map(({ topic }) => topic))]
  const turns = new Map(lanes.map((lane) => [lane, lane.turn]))
  // Before the question: a commit that is acknowledged while it is asked says nothing of an answer without it.
  const stood = new Map(lanes.map((lane) => [lane, lane.committed]))
  const committed = await readSettled(options, topics, lanes)
  if (stale()) return []
  for (const topic of topics) {
    // One that is open already (a look-up of another topic has failed after it) is not asked about again.
    const here = lanes.filter((lane) => lane.topic === topic && isUnknown(lane) && lane.turn === turns.get(lane))
    const known = new Map(committed.filter((entry) => entry.topic === topic).map((entry) => [entry.partition, entry]))
    const without = here.filter((lane) => !goOnOrBegin(options, lane, known.get(lane.partition)))
    const kept = without.filter(({ state }) => state === 'verifying')
    if (kept.length > 0) {
      const positions = kept.map(({ position = 0n }) => position)
      const ranges = await options.admin.ranges(topic)
      if (stale()) return []
      for (const [i, lane] of kept.entries()) {
        goOnOrRemake(options, lane, stood.get(lane), positions[i]!, known.get(lane.partition)?.offset ?? -1n, ranges)
      }
    }
    const fresh = without.filter((lane) => lane.state === 'opening')
    if (fresh.length === 0) continue
    const isNewGroup = [...known.values()].every(({ offset }) => offset < 0n && offset !== RESET)
    if (options.startFrom === 'earliest' || !isNewGroup) {
      const ranges = await options.admin.ranges(topic)
      if (stale()) return []
      const former = await formerOffsets(options, topic)
      if (stale()) return []
      const lows = new Map(ranges.map(({ partition, low }) => [partition, low]))
      for (const lane of fresh) {
        const low = lows.get(lane.partition) ?? 0n
        const reset = known.get(lane.partition)?.offset === RESET
        if (reset) tellReset(options, lane, low)
        const taken = reset ? low : (former.get(lane.partition) ?? low)
        begin(options, lane, taken > low ? taken : low)
      }
    } else {
      const decides = fresh.some(({ partition }) => partition === 0)
      if (decides && options.ready()) await decideForAll(options, topic, stale)
      if (stale()) return []
      // Who has decided also waits until it reads that, so that all begin at what the broker holds.
      waiting.push(...fresh)
    }
  }
  return waiting
}

function isUnknown({ state }: Lane): boolean {
  return state === 'opening' || state === 'verifying'
}

/** Of the others of a topic it is enough to know whether they have an offset at all. */
async function readSettled(
  { admin, groupId, settledOffsets }: OpeningOptions,
  topics: readonly string[],
  lanes: readonly Lane[],
): Promise<readonly CommittedOffset[]> {
  const [committed, settled] = await Promise.all([admin.committed(groupId, topics), settledOffsets(lanes)])
  if (settled === undefined) return committed
  const places = new Set(settled.map(laneKey))
  return [...committed.filter((entry) => !places.has(laneKey(entry))), ...settled]
}

/** Returns false for a lane whose group has no offset. */
function goOnOrBegin(options: OpeningOptions, lane: Lane, found: CommittedOffset | undefined): boolean {
  const offset = found?.offset ?? -1n
  const metadata = found?.metadata ?? ''
  const commit = { offset, metadata }
  if (offset < 0n) return false
  if (lane.state === 'opening') {
    options.open(lane, offset, commit, toldOf(options, lane, commit))
    return true
  }
  if ([lane.committed, ...lane.sent].some((ours) => ours !== undefined && isSame(ours, commit))) {
    lane.committed = lane.known = commit
    options.goOn(lane)
  } else {
    const ours = (lane.committed?.offset ?? -1n).toString()
    const { tier, topic, partition } = lane
    options.emitter.emit('reopened', { tier, topic, partition, ours, broker: offset.toString() })
    options.reopen(lane, commit, toldOf(options, lane, commit))
  }
  return true
}

/**
 * A kept lane of whose group the broker holds no offset. kafkajs itself commits -2 where its position has left the log: cut
 * below us, nobody else was at work, so ours is said again; or else the log is another one, as it is where our commit is gone.
 */
function goOnOrRemake(
  options: OpeningOptions,
  lane: Lane,
  stood: Commit | undefined,
  position: bigint,
  offset: bigint,
  ranges: readonly LogRange[],
): void {
  if (lane.closed) return
  const range = ranges.find(({ partition }) => partition === lane.partition)
  const gone = offset !== RESET && stood !== undefined
  if (range !== undefined && (gone || isOther(range, position, stood, offset))) {
    options.remade(lane, range.low)
    return
  }
  lane.committed = undefined
  lane.dirty = true
  options.goOn(lane)
}

/** Whether the log is another one than the lane has read: by where it ends, or as kafkajs has put its -2 over a commit of ours. */
export function isOther(
  { low, high }: LogRange,
  /** Where the lane stood before that was asked: it may have gone on since. */
  position: bigint,
  /** What stood at the broker, of ours, before that was asked. */
  stood: Commit | undefined,
  found: bigint | undefined,
): boolean {
  return high < position || (found === RESET && stood !== undefined && low <= position)
}

function toldOf({ emitter }: OpeningOptions, lane: Lane, { offset, metadata }: Commit): Told {
  const told = unpackCommit(offset, metadata)
  if (told !== undefined) return told
  const { tier, topic, partition } = lane
  emitter.emit('metadata', { tier, topic, partition, offset: offset.toString(), length: metadata.length })
  return NOTHING
}

const NOTHING: Told = { done: [], marks: NO_MARKS }

function tellReset({ emitter }: OpeningOptions, { tier, topic, partition }: Lane, low: bigint): void {
  emitter.emit('gone', { tier, topic, partition, from: '?', to: low.toString() })
}

function begin(options: OpeningOptions, lane: Lane, position: bigint): void {
  // Closed by a crash during the look-ups, which begins no new assignment.
  if (lane.closed) return
  // Exactly-once: no commit before the first batch, see `commitsOnce`. Without one, who comes next begins here as well.
  lane.dirty = lane.transactions === undefined
  options.open(lane, position, undefined, NOTHING)
}

/** The least offset that the groups of before have come to, by partition: what stands below was settled by all of them. */
async function formerOffsets({ admin, formerGroups }: OpeningOptions, topic: string): Promise<Map<number, bigint>> {
  const least = new Map<number, bigint>()
  for (const group of formerGroups) {
    for (const { partition, offset } of await admin.committed(group, [topic])) {
      const before = least.get(partition)
      if (offset >= 0n && (before === undefined || offset < before)) least.set(partition, offset)
    }
  }
  return least
}

async function decideForAll(options: OpeningOptions, topic: string, stale: () => boolean): Promise<void> {
  const ranges = await options.admin.ranges(topic)
  const at = typeof options.startFrom === 'number' ? await options.admin.offsetsAt(topic, options.startFrom) : undefined
  if (stale()) return
  await options.commit(
    ranges.map(({ partition, high }) => ({ topic, partition, offset: at?.get(partition) ?? high, metadata: '' })),
  )
}
