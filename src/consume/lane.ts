/**
 * The lane of one assigned partition: what was fetched and is not settled, in memory.
 *
 * States:  opening -> open <-> verifying -> closed
 *   - `opening`: assigned, but the broker has not told yet where the group stands. No position, no record.
 *   - `open`: takes batches that continue its position, starts handlers, commits its frontier.
 *   - `verifying`: kept over a rebalance; until the broker is asked whether the partition was somebody else's meanwhile,
 *     nothing starts and nothing is committed. Batches are taken.
 *   - `closed`: taken away, or dropped. What had not started is gone; what runs still ends, and its result is not used.
 *     A closed lane is never opened again: the next assignment makes a new one.
 *
 * A record:  queued -> running -> (copy under way) -> settled.  It counts as held until it is settled.
 *
 * Must never happen: a batch taken that does not begin at `position`; a record started in any state but `open`; the
 * frontier of a lane that is not `open` committed; a commit below one that was acknowledged for this lane.
 */
import type { Transactions } from '../deliver'
import type { Timer, TopicPartition } from '../ports'
import type { Message } from '../record'
import type { Handled, Rejected } from '../route'
import type { BatchQueue } from './batch-queue'
import { CommitTracker, type Tracked } from './commit-tracker'
import { DoneBeyond, type OffsetRange } from './done-beyond'
import type { Caution, LaneMarks } from './lane-marks'
import { LaneQueue, type Waiting } from './lane-queue'
import type { SerialQueue } from './serial-queue'

/** What a lane's records wait in. */
export type EntryQueue = LaneQueue<Entry> | SerialQueue<Entry> | BatchQueue<Entry>

export interface Entry extends Tracked, Waiting {
  readonly message: Message
  readonly bytes: number
  /** What the headers of a retry or a replay say; of any other record they are read only when it fails. */
  opened: Handled | Rejected | undefined
  /** When they were read that way, of one that waits until it is due; ms since the epoch. */
  readonly openedAt: number | undefined
  /** On the main topic: whether a replay may have set its headers, so that they are to be looked at. */
  readonly replayed: boolean
}

/** What a lane sees of an attempt that outlived the lane before. */
export interface UnfinishedAttempt {
  /** Called with its outcome: copies of the same record that were delivered again while it runs. */
  joiners: ((outcome: Outcome) => void)[] | undefined
}

export type Outcome =
  | { readonly kind: 'ok' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'timeout'; readonly error: unknown }
  /** The handler paused the lane and threw before it resumed, or a shutdown cut it short: the same record again, nothing counted. */
  | { readonly kind: 'again' }

/** What a commit says of a partition. */
export interface Commit {
  readonly offset: bigint
  /** What is done beyond the offset, see done-beyond.ts. */
  readonly metadata: string
}

export function laneKey({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`
}

/** Attempts of closed lanes of one partition that still run, by offset: a record that comes again joins its call. */
export type Unfinished = Map<string, UnfinishedAttempt>

export class Lane implements TopicPartition {
  state: 'opening' | 'open' | 'verifying' | 'closed' = 'opening'
  /** The offset that the next batch must begin at; undefined while opening. */
  position: bigint | undefined
  tracker = new CommitTracker<Entry>(0n)
  readonly queue: EntryQueue
  /** Records and bytes in memory that are not settled. */
  held = 0
  bytes = 0
  /** Fetch responses that its records keep in memory, since it was last empty; bytes, at most. */
  pinned = 0
  running = 0
  /** Copies whose publish has failed at least once and is not through: the lane waits for them. */
  troubled = 0
  /** Records whose handler has ended and whose copy, or what they sent, is under way. */
  copies = 0
  /** The dependency that the lane waits for, and the records that are to be handled first once it is back. */
  heldBy: string | undefined
  aside: Entry[] = []
  /** Handlers that paused the lane and did not resume it. */
  handlerPauses = 0
  /** Whether fetching is paused, by us and for want of room. */
  full = false
  /** The last commit that the broker acknowledged for this lane. */
  committed: Commit | undefined
  /** The same, and still where the client has put something of its own over it. */
  known: Commit | undefined
  /** Sent since then, perhaps stored although the answer was lost. */
  sent: Commit[] = []
  /** Something was settled since the last commit was chosen. */
  dirty = false
  /** Exactly-once: what is published goes through these, together with the offset. */
  transactions: Transactions<Entry> | undefined
  /** A commit is under way that is none of a transaction. */
  committing = false
  /**
   * Since the transactional id was taken over, no commit was acknowledged. Only one says that the partition is still ours:
   * a transaction is not asked for its generation.
   */
  unproven = false
  /** Counts openings and verifications: an answer to a question of before is of no use. */
  turn = 0
  /** What was handled beyond the committed offset before this lane was; undefined once all of it has passed. */
  done: DoneBeyond | undefined
  /**
   * What is settled beyond the frontier takes up most of a commit's metadata. Until the frontier moves, one record at a
   * time: what finds no room there would be handled again after a crash.
   */
  crowded = false
  /** A batch of the present generation has come: what comes now was fetched from a position of ours. */
  synced = false
  /** Records that the lane was given since it was opened, done ones too; the next gets this number. */
  added = 0
  /** One more than the highest number among those that have started. */
  reach = 0
  /** Only records with a lower number may start: it is known at the broker that those may. See lane-marks.ts. */
  limit = Number.MAX_SAFE_INTEGER
  /** Where `reach` comes to this, it is time to move `limit`. */
  hurryAt = Number.MAX_SAFE_INTEGER
  /** Undefined where crashes are not guarded against. */
  marks: LaneMarks | undefined
  /** A process died at work on this partition: the records that may have been the cause run one at a time. */
  caution: Caution | undefined
  /**
   * A transaction with the lane's offsets is under way, or its fate is not known: until it is, no plain commit may say anything
   * of this lane.
   */
  transacting = false
  dueTimer: Timer | undefined
  reportedAt = -Infinity
  reportedHeld = 0
  /** Those who wait until the lane is open or has room. */
  #waiters = new Set<() => void>()

  constructor(
    readonly topic: string,
    readonly partition: number,
    /** `main`, or the canonical delay of the tier. */
    readonly tier: string,
    gated: boolean,
    /** Undefined where there are none, as is usual. */
    readonly unfinished: Unfinished | undefined,
    makeQueue?: (lane: Lane) => EntryQueue,
  ) {
    this.queue = makeQueue ? makeQueue(this) : new LaneQueue(gated)
  }

  /** Of the records that were added, how many the frontier has passed. */
  get passed(): number {
    return this.added - this.tracker.length
  }

  get closed(): boolean {
    return this.state === 'closed'
  }

  open(position: bigint, committed: Commit | undefined, done: readonly OffsetRange[] = []): void {
    this.position = position
    this.tracker = new CommitTracker(position)
    this.committed = this.known = committed
    this.done = done.length === 0 ? undefined : new DoneBeyond(done)
    this.state = 'open'
    this.turn++
    this.wake()
  }

  /** Returns how many records were dropped before they had started. */
  close(): number {
    const dropped = this.queue.length + this.aside.length
    this.state = 'closed'
    this.dropQueue()
    this.wake()
    return dropped
  }

  /** Until the broker is asked where the group stands, nothing starts and nothing is committed. */
  verify(): void {
    this.state = 'verifying'
    this.turn++
  }

  dropQueue(): void {
    this.queue.clear()
    this.aside = []
    this.dueTimer?.cancel()
    this.dueTimer = undefined
  }

  settle(entry: Entry): void {
    if (entry.settled) return
    this.held--
    this.bytes -= entry.bytes
    if (this.tracker.settle(entry)) this.crowded = false
    this.dirty = true
  }

  /** Calls `fn` once, when something changes that a batch may wait for; returns what takes that back. */
  onChange(fn: () => void): () => void {
    this.#waiters.add(fn)
    return () => this.#waiters.delete(fn)
  }

  get awaited(): boolean {
    return this.#waiters.size > 0
  }

  wake(): void {
    if (this.#waiters.size === 0) return
    const waiters = this.#waiters
    this.#waiters = new Set()
    for (const tell of waiters) tell()
  }
}
