/**
 * The engine of one consumer group: the main topics, or one tier. Fetching and handling are apart: batches go into
 * lanes and kafkajs fetches on; handlers run on the lanes' own time; commits are sent when frontiers move.
 *
 * Moved by:  assigned (a new generation), batch, passed, rebalancing, crashed; a handler that ends; the due timer; room.
 *   - assigned: lanes that are gone are closed, all of them under a new member id (the broker took us for dead); kept ones
 *     are sought to their own position and verify before they go on.
 *   - batch: taken only where it continues its lane. That stands in for the generation, which a batch does not carry.
 *   - rebalancing: what is settled is committed while the broker still takes it; nothing starts until the assignment.
 *   - crashed: the member is out of the group, so all lanes are closed.
 *   - stopping: nothing is taken or started any more; what runs ends; what is settled is committed.
 *
 * Must never happen: an exception into the driver; two handlers at once where the ordering mode allows one; more handlers
 * than `concurrency`; a batch that waits longer than WAIT_FOR_ROOM_MS, since it holds up the whole broker's fetches.
 */
import type { Settings } from '../config'
import type { Transactions } from '../deliver'
import type { RetrylineError } from '../errors'
import { errorText, type Emitter } from '../observe'
import type {
  Assignment,
  Clock,
  Driver,
  FetchedBatch,
  GroupConsumer,
  Random,
  TopicAdmin,
  TopicPartition,
} from '../ports'
import type { Message } from '../record'
import { tierGroupId, type Tier, type Topology } from '../topology'
import type { Alone } from './alone'
import { BatchQueue } from './batch-queue'
import { createCommitter, type Committer } from './committer'
import { CrashGuard } from './crash-guard'
import type { MakeTransactions } from './exactly-once'
import { openAgain, serialQueue, takeBatch, type Intake } from './intake'
import { type Entry, type EntryQueue, Lane, laneKey } from './lane'
import { openLanes } from './opening'
import type { LaneHost } from './outages'
import { createPositions, type Positions } from './positions'
import type { Processor } from './process-record'
import { exceedsShare, fetchSizes, fits, type Limits, type Room, roomOf } from './room'
import { SharedPlaces } from './shared-places'
import { Starter } from './starter'
import { UnfinishedTable } from './unfinished'
import { UnreadableBatches } from './unreadable-batches'

/** How long a batch may hold up the fetches of its broker while its lane has no room (or no position) yet, ms. */
const WAIT_FOR_ROOM_MS = 50
/** The delay of a resume, a heartbeat and a stop; kafkajs's default of 5 s makes each of them late by up to that. */
const FETCH_WAIT_MS = 200
/** Partitions of a group whose batches are handed over side by side. */
const BATCHES_AT_ONCE = 8
const METADATA_MAX_AGE_MS = 60_000
const FLUSH_TRIES = 3
/** Lanes that have not their transactional id after so long are opened later than the others, ms. */
const SLOW_MS = 1_000
/** What waits to be published together with its offset: nothing new is started beside so many of a lane. */
const MAX_STAGED = 500
/** The least time between two `lane` events of one lane that only say how deep it is, ms. */
const REPORT_EVERY_MS = 1_000

export interface GroupOptions {
  readonly settings: Settings
  readonly topology: Topology
  readonly groupId: string
  readonly topics: readonly string[]
  /** Of these topics, as far as is known at the start. */
  readonly partitions: number
  /** The tier; undefined for the main topics. */
  readonly tier: Tier | undefined
  readonly driver: Driver
  readonly admin: TopicAdmin
  readonly clock: Clock
  readonly emitter: Emitter
  readonly random: Random
  readonly alone: Alone
  /** Undefined with `delivery: 'at-least-once'`. */
  readonly makeTransactions?: MakeTransactions | undefined
  makeProcessor(callbacks: {
    released(lane: Lane, entry: Entry): void
    settled(lane: Lane, entry: Entry): void
    again(lane: Lane, entry: Entry): void
    host: LaneHost
    nextInPlace(lane: Lane, entry: Entry): Entry | undefined
    now(): number
    laneChanged(lane: Lane): void
    stopping(): boolean
    together(lane: Lane, entries: readonly Entry[]): void
  }): Processor
  /** Whether nothing may start at all, whoever pauses what. */
  isHalted(): boolean
  /** Whether the user has paused this main topic (on the main topic and its tiers alike). */
  isPaused(topic: string): boolean
  /** While stopping: something has ended that the stop may wait for. */
  progress(): void
}

export class Group {
  readonly tierName: string
  readonly lanes = new Map<string, Lane>()
  readonly processor: Processor
  readonly #unfinished = new UnfinishedTable()
  readonly #consumer: GroupConsumer
  readonly #committer: Committer
  readonly #starter: Starter
  readonly #shared = new SharedPlaces()
  readonly #positions: Positions
  readonly #intake: Intake
  readonly #limits: Limits
  /** Undefined where the user wants none. */
  readonly #guard: CrashGuard | undefined
  readonly #leaveAlone: () => void
  /** Ends of waits that a stop cuts short. */
  readonly #waits = new Set<() => void>()
  /** Transactional producers on their way out. */
  readonly #leaving = new Set<Promise<void>>()
  #epoch = 0
  #memberId: string | undefined
  #stopping = false
  /** While stopping: nothing is published any more. */
  #closing = false
  /** From the news of a rebalance to its end no record is started. */
  #rebalancing = false
  #fetchedAt: number | undefined
  /** Of the present assignment, monotonic, ms. */
  #assignedAt = 0
  crashed: string | undefined
  readonly unreadable: UnreadableBatches

  constructor(readonly options: GroupOptions) {
    const { settings, driver, clock, emitter, tier } = options
    this.tierName = tier?.name ?? 'main'
    const { maxBufferedRecords, maxBufferedBytes, maxWaitingBytes } = settings
    this.#limits = { maxBufferedRecords, maxBufferedBytes: tier === undefined ? maxBufferedBytes : maxWaitingBytes }
    this.unreadable = new UnreadableBatches(this.tierName, clock, emitter)
    this.#intake = {
      ordering: settings.ordering,
      gated: tier !== undefined,
      topology: options.topology,
      emitter,
      clock,
      settled: (lane, entry) => this.#settled(lane, entry),
    }
    this.#consumer = driver.consumer(
      {
        groupId: options.groupId,
        topics: options.topics,
        sessionTimeoutMs: settings.sessionTimeoutMs,
        heartbeatIntervalMs: settings.heartbeatIntervalMs,
        rebalanceTimeoutMs: settings.rebalanceTimeoutMs,
        maxWaitMs: FETCH_WAIT_MS,
        ...fetchSizes(this.#limits, options.partitions),
        metadataMaxAgeMs: METADATA_MAX_AGE_MS,
        concurrency: BATCHES_AT_ONCE,
      },
      {
        assigned: (assignment) => this.#assigned(assignment),
        rebalancing: () => {
          // What starts now might be handled a second time by the new owner of its partition.
          this.#rebalancing = true
          this.#endWork()
          this.#committer.now()
        },
        batch: (batch) => this.#batch(batch),
        passed: (where, first, next) => {
          const lane = this.lanes.get(laneKey(where))
          this.unreadable.read(where, next)
          if (lane) this.#positions.passed(lane, first, next)
        },
        unreadable: (where, offset, error, againInMs) => this.unreadable.found(where, offset, error, againInMs),
        crashed: (error, restarting) => {
          this.crashed = errorText(error)
          // The member is out of the group: its partitions go to others, and what has not started here goes with them.
          for (const [key, lane] of this.lanes) this.#closeLane(key, lane)
          this.unreadable.keep(new Set())
          emitter.emit('crashed', { tier: this.tierName, error: this.crashed, restarting })
        },
        fetched: () => {
          this.#fetchedAt = clock.monotonic()
          this.#committer.awake()
          // Not at the join: what crashes it at the first fetch would look well between two crashes.
          this.crashed = undefined
        },
        restarted: () => emitter.emit('restarted', { tier: this.tierName }),
        problem: (where, error) =>
          emitter.emit('problem', { where: `${this.groupId}: ${where}`, error: errorText(error) }),
      },
    )
    this.#committer = createCommitter({
      clock,
      emitter,
      tier: this.tierName,
      intervalMs: settings.commitIntervalMs,
      lanes: () => this.lanes.values(),
      // A commit that comes again in a later generation would put back what a transaction has committed there.
      ready: () => (options.makeTransactions ? this.#consumer.commitsOnce : this.#consumer.running),
      commit: (entries) => this.#consumer.commit(entries),
      said: (lane) => this.#said(lane),
      answered: (lane) => lane.transactions?.poke(),
    })
    this.#positions = createPositions({
      admin: options.admin,
      emitter,
      consumer: this.#consumer,
      groupId: this.groupId,
      stopping: () => this.#stopping,
      wait: (ms) => this.#waitUnlessStopped(ms),
      remade: (lane, low) => this.#remade(lane, low),
      moved: () => this.#committer.poke(),
    })
    this.#starter = new Starter({
      clock,
      concurrency: settings.concurrency,
      gated: tier !== undefined,
      mayStart: (lane) => this.#mayStart(lane),
      prepare: (lane, entry) => openAgain(this.#intake, lane, entry),
      hurry: (lane) => this.#hurry(lane),
      start: (lane, entry) => {
        if (lane.caution === undefined) this.processor.start(lane, entry)
        else this.#guard?.start(lane, entry, lane.caution)
      },
    })
    this.processor = options.makeProcessor({
      released: (lane, entry) => this.#released(lane, entry),
      settled: (lane, entry) => this.#settled(lane, entry),
      again: (lane, entry) => this.#released(lane, entry, 'again'),
      host: {
        setAside: (lane, entry) => {
          lane.aside.push(entry)
          this.#released(lane, entry, 'aside')
        },
        firstAside: (lane, retry) => {
          const [entry] = lane.aside
          return entry && this.#mayProbe(lane) && this.#starter.hasPlace(retry) ? entry : undefined
        },
        probe: (lane, entry) => {
          lane.aside.shift()
          this.#starter.startThis(lane, entry)
        },
        goOn: (lane) => {
          for (const entry of lane.aside) lane.queue.putBack(entry)
          lane.aside = []
          this.#starter.pump(lane)
        },
      },
      nextInPlace: (lane, entry) => this.#nextInPlace(lane, entry),
      now: () => this.#starter.now(),
      laneChanged: (lane) => {
        this.#starter.pump(lane)
        if (this.#stopping) this.options.progress()
      },
      stopping: () => this.#stopping,
      together: (lane, entries) => {
        this.#shared.share(entries)
        this.#starter.together(lane, entries)
      },
    })
    this.#guard = settings.crashLimit === false ? undefined : this.#makeGuard(settings.crashLimit)
    this.#leaveAlone = options.alone.join({
      atWork: () => this.#starter.running - (this.#guard?.waiting ?? 0),
      goOn: () => this.pumpAll(),
    })
  }

  #makeGuard(crashLimit: number): CrashGuard {
    const { settings, clock, emitter, alone, random } = this.options
    return new CrashGuard({
      crashLimit,
      atLeast: Math.max(settings.concurrency, settings.batch?.maxRecords ?? 1),
      commitIntervalMs: settings.commitIntervalMs,
      clock,
      emitter,
      alone,
      random,
      mayRun: (lane) => this.#isFree(lane),
      run: (lane, entry) => this.processor.start(lane, entry),
      postpone: (lane, entry) => this.processor.postpone(lane, entry),
      crashLoop: (lane, entry, deaths) => this.processor.crashLoop(lane, entry, deaths),
      hurry: () => this.#committer.hurry(),
    })
  }

  get groupId(): string {
    return this.options.groupId
  }

  get running(): number {
    return this.#starter.running
  }

  /** How long the broker has not answered a fetch, ms; undefined before the first. */
  get silentMs(): number | undefined {
    return this.#fetchedAt === undefined ? undefined : this.options.clock.monotonic() - this.#fetchedAt
  }

  /** How long the present assignment stands, ms. */
  get assignedMs(): number {
    return this.options.clock.monotonic() - this.#assignedAt
  }

  get assigned(): boolean {
    return this.#epoch > 0
  }

  start(): Promise<void> {
    return this.#consumer.start()
  }

  /** Starts what may start now: after a resume. */
  pumpAll(): void {
    for (const lane of this.lanes.values()) this.#starter.pump(lane)
  }

  // ── what the driver reports ──────────────────────────────────────────────────────────────────────────────────────

  #assigned({ memberId, partitions }: Assignment): void {
    this.#epoch++
    // A join is a sign of life too: a broker that never answers a fetch after it is silent from here on.
    this.#fetchedAt = this.#assignedAt = this.options.clock.monotonic()
    this.#rebalancing = false
    const same = memberId === this.#memberId
    this.#memberId = memberId
    const before = this.lanes.size
    const assigned = new Set(partitions.map(laneKey))
    let dropped = 0
    for (const [key, lane] of this.lanes) {
      if (same && assigned.has(key)) continue
      dropped += this.#closeLane(key, lane)
    }
    const kept = this.lanes.size
    this.unreadable.keep(assigned)
    for (const where of partitions) {
      const lane = this.lanes.get(laneKey(where))
      if (lane) this.#keep(lane)
      else this.#add(where)
    }
    this.options.emitter.emit('rebalanced', {
      tier: this.tierName,
      assigned: this.lanes.size,
      added: this.lanes.size - kept,
      removed: before - kept,
      kept,
      dropped,
    })
    if (this.lanes.size > 0 && !this.#stopping) void this.#open([...this.lanes.values()])
    // What is to be published is committed with the offset, so the stop waits for lanes that have such.
    else void this.#open([...this.lanes.values()].filter(({ transactions }) => (transactions?.pending ?? 0) > 0))
  }

  #keep(lane: Lane): void {
    lane.synced = false
    // A lane that waits for its position stays as it is; the present generation asks for it again.
    if (lane.state === 'open') lane.verify()
    if (lane.position !== undefined) this.#consumer.seek(lane, lane.position)
    if (lane.full || this.#stopping) this.#consumer.pause(lane)
    else this.#consumer.resume(lane)
  }

  #add(where: TopicPartition): Lane {
    const key = laneKey(where)
    const lane = new Lane(
      where.topic,
      where.partition,
      this.tierName,
      this.options.tier !== undefined,
      this.#unfinished.of(where),
      this.#makeQueue,
    )
    this.#guard?.watch(lane)
    lane.transactions = this.options.makeTransactions?.(lane, {
      groupId: this.groupId,
      committer: this.#committer,
      settled: (one, entry) => this.#settled(one, entry),
      said: (one) => this.#said(one),
      lost: (one) => this.#lost(one),
    })
    this.lanes.set(key, lane)
    if (this.#stopping) this.#consumer.pause(lane)
    else this.#consumer.resume(lane)
    return lane
  }

  get #makeQueue(): ((lane: Lane) => EntryQueue) | undefined {
    const { clock, settings, tier } = this.options
    const { batch, ordering } = settings
    if (batch === undefined) {
      return tier === undefined && ordering === 'partition' ? (lane) => serialQueue(this.#intake, lane) : undefined
    }
    const { maxRecords, maxBytes, lingerMs } = batch
    return (lane) =>
      new BatchQueue<Entry>({
        maxRecords: () => (lane.crowded || lane.caution !== undefined ? 1 : maxRecords),
        maxBytes,
        lingerMs,
        clock,
        // It waits for a call that runs already.
        isAlone: ({ offset }) => lane.unfinished?.has(offset) === true,
        wake: () => this.#starter.pump(lane),
      })
  }

  #closeLane(key: string, lane: Lane): number {
    this.lanes.delete(key)
    this.#unfinished.keep(lane, this.processor.runner.watchdog.running)
    this.#closeTransactions(lane)
    const dropped = lane.close()
    this.#guard?.closed(lane)
    return dropped
  }

  #closeTransactions({ transactions }: Lane): void {
    if (transactions === undefined) return
    const left = transactions.close().finally(() => this.#leaving.delete(left))
    this.#leaving.add(left)
  }

  /** Its transaction has failed, and what the broker made of it is not known. */
  #lost(lane: Lane): void {
    // Where it is being verified anyway, that asks for its transactions as well.
    if (lane.state !== 'open') return
    lane.verify()
    void this.#open([lane])
  }

  async #prepare(lanes: readonly Lane[]): Promise<readonly Lane[]> {
    const all = Promise.all(lanes.map(async ({ transactions }) => transactions?.takeOver()))
    await Promise.race([all, this.#waitUnlessStopped(SLOW_MS)])
    // One that waits for its broker must not hold up the others.
    return lanes.filter(({ transactions }) => transactions?.ready !== false)
  }

  #open(lanes: readonly Lane[]): Promise<void> {
    const exactly = this.options.makeTransactions !== undefined
    const { admin, emitter, settings, tier } = this.options
    return openLanes(
      {
        admin,
        emitter,
        groupId: this.groupId,
        startFrom: tier === undefined ? settings.startFrom : 'earliest',
        formerGroups:
          tier === undefined
            ? []
            : [...this.options.topology.formerGroupIds].map((group) => tierGroupId(group, tier.delayMs)),
        epoch: () => this.#epoch,
        stopped: () => (exactly ? this.#closing : this.#stopping),
        wait: (ms) => this.#waitUnlessStopped(ms),
        ...(exactly && { prepare: (asked: readonly Lane[]) => this.#prepare(asked) }),
        settledOffsets: (asked) => this.#consumer.settledOffsets(asked),
        ready: () => this.#consumer.running,
        commit: (entries) => this.#consumer.commit(entries),
        open: (lane, position, committed, { done, marks }) => {
          lane.open(position, committed, done)
          // A rebalance may have come while it was opening.
          if (lane.marks) lane.marks.clean = this.#stopping
          this.#guard?.opened(lane, marks)
          this.#consumer.seek(lane, position)
          lane.transactions?.verified(committed)
          if (lane.dirty) this.#committer.poke()
        },
        goOn: (lane) => {
          lane.state = 'open'
          lane.wake()
          if (!this.#stopping) lane.marks?.again(lane)
          lane.transactions?.verified(lane.committed)
          if (lane.dirty) this.#committer.poke()
          this.#starter.pump(lane)
        },
        reopen: (lane, committed, { done, marks }) => {
          this.#closeLane(laneKey(lane), lane)
          const fresh = this.#add(lane)
          if (exactly) {
            // Somebody else was at work: whoever that was must be kept from it before the offset counts.
            void this.#open([fresh])
            return
          }
          fresh.open(committed.offset, committed, done)
          this.#guard?.opened(fresh, marks)
          this.#consumer.seek(fresh, committed.offset)
        },
        remade: (lane, low) => this.#remade(lane, low),
      },
      lanes,
    )
  }

  /** What the lane knows is of a log that is no more: what waits is dropped, and what runs ends for nothing. */
  #remade(lane: Lane, low: bigint): void {
    this.options.emitter.emit('problem', {
      where: laneKey(lane),
      error: `the topic was deleted and made anew: it is read from its beginning, ${low}, and not on from ${lane.position}`,
    })
    this.#closeLane(laneKey(lane), lane)
    this.#unfinished.drop(lane)
    const fresh = this.#add(lane)
    const begin = (): void => {
      // An assignment meanwhile has opened it.
      if (fresh.state !== 'opening') return
      fresh.dirty = true
      fresh.open(low, undefined)
      this.#consumer.seek(fresh, low)
      fresh.transactions?.verified(undefined)
      this.#committer.poke()
    }
    if (fresh.transactions) void fresh.transactions.takeOver().then(begin)
    else begin()
  }

  #waitUnlessStopped(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        timer.cancel()
        this.#waits.delete(end)
        resolve()
      }
      const timer = this.options.clock.after(ms, end)
      this.#waits.add(end)
    })
  }

  async #batch(batch: FetchedBatch): Promise<void> {
    this.#committer.awake()
    const lane = this.lanes.get(laneKey(batch))
    if (!lane || this.#stopping) {
      // Unresolved, and paused: a refused batch is fetched again at once, thousands of times a second.
      this.#consumer.pause(batch)
      return
    }
    const hasWaited = lane.position === undefined
    if (lane.position === undefined) {
      await this.#changeOrTimeout(lane)
      // Not resolved, so the same is fetched again, from the lane's own position once that is known.
      if (lane.position === undefined || lane.closed) return
    }
    if (batch.fetchedOffset !== lane.position) {
      this.#positions.refuse(lane, batch)
      return
    }
    lane.synced = true
    this.unreadable.read(batch, batch.lastOffset + 1n)
    const left = this.#take(lane, batch)
    // The seek to where the lane begins is still to be carried out, and would bring the same again, to be refused.
    if (hasWaited) this.#consumer.seek(lane, lane.position)
    this.#starter.pump(lane)
    // What was left of a batch comes again once there is room for more than a record or two, and for the first of it: one that
    // does not fit, however much is free, would come again at once, thousands of times a second.
    const isFull = (): boolean =>
      left === undefined ? this.#isFull(lane) : !this.#hasRoom(lane) || !fits(left, this.#roomOf(lane), lane)
    if (isFull()) {
      await this.#changeOrTimeout(lane)
      if (isFull() && !lane.closed && !lane.full) {
        lane.full = true
        this.#consumer.pause(lane)
        this.#reportLane(lane)
      }
    }
  }

  // ── a batch into its lane ────────────────────────────────────────────────────────────────────────────────────────

  /** Returns the first record that was not taken. */
  #take(lane: Lane, batch: FetchedBatch): Message | undefined {
    const next = takeBatch(this.#intake, lane, batch, this.#roomOf(lane))
    if (next === undefined) return batch.messages[0]
    batch.resolve(next)
    lane.position = next
    if (lane.dirty) this.#committer.poke()
    if (this.options.clock.monotonic() - lane.reportedAt >= REPORT_EVERY_MS) this.#reportLane(lane)
    return next > batch.lastOffset ? undefined : batch.messages.find(({ offset }) => BigInt(offset) >= next)
  }

  // ── starting and settling ────────────────────────────────────────────────────────────────────────────────────────

  #mayStart(lane: Lane): boolean {
    return lane.heldBy === undefined && this.#mayProbe(lane)
  }

  #mayProbe(lane: Lane): boolean {
    return (
      this.#isFree(lane) &&
      !this.options.alone.closed &&
      (!lane.crowded || lane.running === 0) &&
      (lane.transactions === undefined || isRoomFor(lane.transactions, lane)) &&
      (lane.caution === undefined || this.#guard?.mayStart(lane, lane.caution) === true)
    )
  }

  /** Whether a record may run here at all, apart from what else runs. */
  #isFree(lane: Lane): boolean {
    return (
      lane.state === 'open' &&
      !this.#stopping &&
      !this.#rebalancing &&
      !this.options.isHalted() &&
      lane.troubled === 0 &&
      lane.handlerPauses === 0 &&
      !this.options.isPaused(this.#mainTopic(lane))
    )
  }

  #mainTopic(lane: Lane): string {
    return this.options.tier === undefined ? lane.topic : (this.options.topology.origin(lane.topic)?.main ?? lane.topic)
  }

  #released(lane: Lane, entry: Entry, then: 'next' | 'again' | 'aside' = 'next'): void {
    if (lane.closed) this.#unfinished.forget(lane, entry)
    if (lane.caution !== undefined) this.#guard?.ended(lane, entry)
    if (this.#shared.leaves(entry)) {
      if (!this.#stopping) this.#starter.letGo(lane, entry, then)
      return
    }
    if (this.#stopping) {
      this.#starter.giveBack(lane)
      this.options.progress()
    } else this.#starter.released(lane, entry, then)
    if (this.options.alone.closed) this.options.alone.look()
  }

  /** The lane is to be allowed more. */
  #hurry(lane: Lane): void {
    // Nothing starts there until the assignment, or ever again, and what is committed meanwhile allows nothing.
    if (lane.marks?.clean) return
    if (lane.marks && lane.limit > 0) lane.marks.hurried = true
    lane.dirty = true
    this.#committer.hurry()
  }

  #said(lane: Lane): void {
    if (lane.closed) return
    this.#guard?.said(lane)
    if (lane.reach >= lane.hurryAt) this.#hurry(lane)
    this.#starter.pump(lane)
  }

  /** What is committed from now on leaves the lanes to their next owners. */
  #endWork(): void {
    for (const lane of this.lanes.values()) lane.marks?.end(lane)
  }

  /** The lane's next record for the place of one that has simply succeeded; undefined where the place was given back. */
  #nextInPlace(lane: Lane, entry: Entry): Entry | undefined {
    if (this.#starter.mayGoOn(lane)) return this.#starter.next(lane, entry)
    this.#released(lane, entry)
    return undefined
  }

  #settled(lane: Lane, entry: Entry): void {
    if (lane.closed) return
    lane.settle(entry)
    if (lane.caution !== undefined) this.#guard?.settled(lane, entry)
    if (lane.dirty) this.#committer.poke()
    lane.transactions?.poke()
    if ((lane.full || lane.awaited) && this.#hasRoom(lane)) {
      lane.wake()
      if (lane.full && !this.#stopping) {
        lane.full = false
        this.#consumer.resume(lane)
        this.#reportLane(lane)
      }
    }
    if (lane.held === 0 && lane.reportedHeld > 0) this.#reportLane(lane)
  }

  // ── room ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  #roomOf(lane: Lane): Room {
    return roomOf(lane, this.lanes.size, this.#limits)
  }

  #isFull(lane: Lane): boolean {
    return exceedsShare(lane, this.lanes.size, this.#limits, 1)
  }

  #hasRoom(lane: Lane): boolean {
    return !exceedsShare(lane, this.lanes.size, this.#limits, 0.5)
  }

  #changeOrTimeout(lane: Lane): Promise<void> {
    const { clock } = this.options
    const wait = new Promise<void>((resolve) => {
      const timer = clock.after(WAIT_FOR_ROOM_MS, () => {
        off()
        resolve()
      })
      const off = lane.onChange(() => {
        timer.cancel()
        resolve()
      })
    })
    // A manual clock moves only while nothing is busy; a batch that waits is not.
    return clock.park?.(wait) ?? wait
  }

  #reportLane(lane: Lane): void {
    const { emitter } = this.options
    if (!emitter.active.lane) return
    lane.reportedAt = this.options.clock.monotonic()
    lane.reportedHeld = lane.held
    const { tier, topic, partition, held, running, full } = lane
    // A lane that knows its records by the batch takes an average away for each.
    emitter.emit('lane', { tier, topic, partition, held, running, bytes: Math.round(lane.bytes), full })
  }

  // ── stopping ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Takes and starts nothing from now on. */
  refuse(): void {
    if (this.#stopping) return
    this.#stopping = true
    this.#guard?.refuse()
    // Nothing starts any more. Who kills the process before the last handlers have ended does not do so for a record's sake.
    this.#endWork()
    this.#committer.hurry()
    for (const end of this.#waits) end()
    for (const lane of this.lanes.values()) {
      lane.dropQueue()
      lane.wake()
      this.#consumer.pause(lane)
    }
  }

  /** Whether nothing of this group is under way: no handler, and no copy that is not through. */
  get drained(): boolean {
    if (this.running > 0) return false
    for (const lane of this.lanes.values()) if (lane.copies > 0) return false
    return true
  }

  abort(reason: RetrylineError): void {
    this.processor.runner.watchdog.abortAll(reason)
  }

  abandon(): void {
    this.processor.runner.watchdog.abandonAll()
  }

  /** What is not published by now is left to the next owner, uncommitted. */
  closeTransactions(): void {
    this.#closing = true
    for (const end of this.#waits) end()
    for (const lane of this.lanes.values()) this.#closeTransactions(lane)
  }

  /** Commits what is settled. */
  flush(expired: () => boolean): Promise<void> {
    this.#endWork()
    return this.#committer.flush(FLUSH_TRIES, expired)
  }

  async close(): Promise<void> {
    this.#committer.close()
    this.processor.runner.watchdog.close()
    for (const lane of this.lanes.values()) {
      lane.close()
      this.#guard?.closed(lane)
    }
    this.#leaveAlone()
    await Promise.all([this.#consumer.stop(), ...this.#leaving])
  }
}

/** What is blocked waits for another record, which may not have been started yet; so one at a time is. */
function isRoomFor({ pending, blocked }: Transactions<Entry>, { running }: Lane): boolean {
  return pending < MAX_STAGED || (blocked && running === 0)
}
