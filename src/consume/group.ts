/**
 * The engine of one consumer group: the main topics, or one tier. Fetching and handling are apart: batches go into
 * lanes and kafkajs fetches on; handlers run on the lanes' own time; commits are sent when frontiers move. Here the parts are
 * joined, and it is decided what may start.
 *
 * Moved by:  assigned (a new generation: assigned-lanes.ts), batch (feed.ts), passed, rebalancing, crashed; a handler that ends; the
 * due timer; room.
 *   - rebalancing: what is settled is committed while the broker still takes it; nothing starts until the assignment.
 *   - crashed: the member is out of the group, so all lanes are closed.
 *   - stopping: nothing is taken or started any more; what runs ends; what is settled is committed.
 *
 * Must never happen: an exception into the driver; two handlers at once where the ordering mode allows one; more handlers
 * than `concurrency`.
 */
import type { Transactions } from '../deliver'
import type { RetrylineError } from '../errors'
import { errorText } from '../observe'
import type { Assignment, GroupConsumer } from '../ports'
import { AssignedLanes } from './assigned-lanes'
import { createCommitter, type Committer } from './committer'
import { CrashGuard, newWho } from './crash-guard'
import { Feed } from './feed'
import type { GroupOptions } from './group-options'
import { openAgain, type Intake } from './intake'
import type { Entry, Lane } from './lane'
import { createPositions, type Positions } from './positions'
import type { Processor } from './process-record'
import { fetchSizes, type Limits } from './room'
import { SharedPlaces } from './shared-places'
import { Starter } from './starter'
import { UnreadableBatches } from './unreadable-batches'
import { Waits } from './waits'

/** The delay of a resume, a heartbeat and a stop; kafkajs's default of 5 s makes each of them late by up to that. */
const FETCH_WAIT_MS = 200
/** Partitions of a group whose batches are handed over side by side. */
const BATCHES_AT_ONCE = 8
const METADATA_MAX_AGE_MS = 60_000
const FLUSH_TRIES = 3
/** Who was put out of the group hears so at its next heartbeat, and may miss one; a client that has crashed begins anew after a while, ms. */
const HEARTBEATS = 2
const BACK_MS = 2_000
const ALIVE_TRIES = 10
/** ms. */
const ALIVE_AGAIN_MS = 500
/** What waits to be published together with its offset: nothing new is started beside so many of a lane. */
const MAX_STAGED = 500
export class Group {
  readonly tierName: string
  readonly processor: Processor
  readonly #consumer: GroupConsumer
  readonly #committer: Committer
  readonly #starter: Starter
  readonly #shared = new SharedPlaces()
  readonly #lanes: AssignedLanes
  readonly #positions: Positions
  readonly #feed: Feed
  readonly #intake: Intake
  /** Undefined where the user wants none. */
  readonly #guard: CrashGuard | undefined
  readonly #leaveAlone: () => void
  readonly #waits: Waits
  /** This process in the group's eyes. */
  readonly #who: string
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
    const limits: Limits = {
      maxBufferedRecords,
      maxBufferedBytes: tier === undefined ? maxBufferedBytes : maxWaitingBytes,
    }
    this.unreadable = new UnreadableBatches(this.tierName, clock, emitter)
    this.#waits = new Waits(clock)
    this.#who = newWho(options.random)
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
        ...fetchSizes(limits, options.partitions),
        metadataMaxAgeMs: METADATA_MAX_AGE_MS,
        concurrency: BATCHES_AT_ONCE,
        tag: this.#who,
      },
      {
        assigned: (assignment) => this.#assigned(assignment),
        rebalancing: () => {
          // What starts now might be handled a second time by the new owner of its partition.
          this.#rebalancing = true
          this.#endWork()
          this.#committer.now()
        },
        batch: (batch) => {
          this.#committer.awake()
          return this.#feed.batch(batch)
        },
        passed: (where, first, next) => {
          const lane = this.#lanes.get(where)
          this.unreadable.read(where, next)
          if (lane) this.#positions.passed(lane, first, next)
        },
        unreadable: (where, offset, error, againInMs) => this.unreadable.found(where, offset, error, againInMs),
        crashed: (error, restarting) => {
          this.crashed = errorText(error)
          this.#lanes.drop()
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
      wait: (ms) => this.#waits.wait(ms),
      remade: (lane, low) => this.#lanes.remade(lane, low),
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
    this.#lanes = new AssignedLanes({
      group: options,
      tierName: this.tierName,
      consumer: this.#consumer,
      committer: this.#committer,
      guard: this.#guard,
      intake: this.#intake,
      unreadable: this.unreadable,
      waits: this.#waits,
      stopping: () => this.#stopping,
      closing: () => this.#closing,
      running: () => this.processor.runner.watchdog.running,
      pump: (lane) => this.#starter.pump(lane),
      settled: (lane, entry) => this.#settled(lane, entry),
      said: (lane) => this.#said(lane),
    })
    this.#feed = new Feed({
      limits,
      clock,
      emitter,
      consumer: this.#consumer,
      intake: this.#intake,
      positions: this.#positions,
      unreadable: this.unreadable,
      lanes: this.lanes,
      stopping: () => this.#stopping,
      pump: (lane) => this.#starter.pump(lane),
      moved: () => this.#committer.poke(),
    })
    this.#leaveAlone = options.alone.join({
      atWork: () => this.#starter.running - (this.#guard?.waiting ?? 0),
      goOn: () => this.pumpAll(),
    })
  }

  #makeGuard(crashLimit: number): CrashGuard {
    const { settings, clock, emitter, alone } = this.options
    return new CrashGuard({
      crashLimit,
      atLeast: Math.max(settings.concurrency, settings.batch?.maxRecords ?? 1),
      commitIntervalMs: settings.commitIntervalMs,
      clock,
      emitter,
      alone,
      who: this.#who,
      alive: (lane) => this.#alive(lane),
      mayRun: (lane) => this.#isFree(lane),
      run: (lane, entry) => this.processor.start(lane, entry),
      postpone: (lane, entry) => this.processor.postpone(lane, entry),
      crashLoop: (lane, entry, deaths) => this.processor.crashLoop(lane, entry, deaths),
      hurry: () => this.#committer.hurry(),
    })
  }

  /** Who is at work in the group, now that all that live had time to find out that they are out of it, and to join. */
  async #alive(lane: Lane): Promise<ReadonlySet<string> | undefined> {
    const { heartbeatIntervalMs } = this.options.settings
    await this.#waits.wait(Math.max(0, HEARTBEATS * heartbeatIntervalMs + BACK_MS - this.assignedMs))
    for (let tries = 0; tries < ALIVE_TRIES && !lane.closed && !this.#stopping; tries++) {
      if (tries > 0) await this.#waits.wait(ALIVE_AGAIN_MS)
      const tags = await this.#consumer.tags()
      if (tags !== undefined) return tags
    }
    return undefined
  }

  get lanes(): ReadonlyMap<string, Lane> {
    return this.#lanes.byKey
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
    return this.#lanes.assigned
  }

  start(): Promise<void> {
    return this.#consumer.start()
  }

  /** Starts what may start now: after a resume. */
  pumpAll(): void {
    for (const lane of this.lanes.values()) this.#starter.pump(lane)
  }

  #assigned(assignment: Assignment): void {
    // A join is a sign of life too: a broker that never answers a fetch after it is silent from here on.
    this.#fetchedAt = this.#assignedAt = this.options.clock.monotonic()
    this.#rebalancing = false
    this.#lanes.take(assignment)
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
    if (lane.closed) this.#lanes.forget(lane, entry)
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
    this.#feed.settled(lane)
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
    this.#waits.cutShort()
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
    this.#waits.cutShort()
    this.#lanes.closeTransactions()
  }

  /** Commits what is settled. */
  flush(expired: () => boolean): Promise<void> {
    this.#endWork()
    return this.#committer.flush(FLUSH_TRIES, expired)
  }

  async close(): Promise<void> {
    this.#committer.close()
    this.processor.runner.watchdog.close()
    const left = this.#lanes.close()
    this.#leaveAlone()
    await Promise.all([this.#consumer.stop(), left])
  }
}

/** What is blocked waits for another record, which may not have been started yet; so one at a time is. */
function isRoomFor({ pending, blocked }: Transactions<Entry>, { running }: Lane): boolean {
  return pending < MAX_STAGED || (blocked && running === 0)
}
