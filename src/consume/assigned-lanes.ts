/**
 * The lanes of one group, from the assignment that brings a partition to the one that takes it away.
 *
 *   assigned, new here -> opening -> open -> at each further assignment verifying -> open
 *   verifying -> closed: somebody else was at work; a fresh one begins at the broker's offset
 *   open      -> verifying: its transaction has failed, and what the broker made of it is not known
 *   any       -> closed: gone in an assignment, or assigned under another member id (the broker took us for dead); a crash
 *   any       -> closed: its topic was made anew; a fresh one begins at the beginning
 *
 * Must never happen: two lanes of one partition; an answer about a former generation that opens a lane of this one; a handler
 * that still runs and is forgotten with its lane, since its record would run a second time beside it.
 */
import type { Assignment, GroupConsumer, TopicPartition } from '../ports'
import { tierGroupId } from '../topology'
import { BatchQueue } from './batch-queue'
import type { Committer } from './committer'
import type { CrashGuard } from './crash-guard'
import type { GroupOptions } from './group-options'
import { type Intake, serialQueue } from './intake'
import { type Entry, type EntryQueue, Lane, laneKey } from './lane'
import { openLanes } from './opening'
import { UnfinishedTable } from './unfinished'
import type { UnreadableBatches } from './unreadable-batches'
import type { Waits } from './waits'

/** Lanes that have not their transactional id after so long are opened later than the others, ms. */
const SLOW_MS = 1_000

export interface AssignedLanesOptions {
  readonly group: Pick<
    GroupOptions,
    'admin' | 'clock' | 'emitter' | 'groupId' | 'makeTransactions' | 'settings' | 'tier' | 'topology'
  >
  readonly tierName: string
  readonly consumer: GroupConsumer
  readonly committer: Committer
  /** Undefined where the user wants none. */
  readonly guard: CrashGuard | undefined
  readonly intake: Intake
  readonly unreadable: UnreadableBatches
  readonly waits: Waits
  readonly stopping: () => boolean
  /** While stopping: nothing is published any more. */
  readonly closing: () => boolean
  /** The handlers that run, whether or not their lane is still here. */
  readonly running: () => Parameters<UnfinishedTable['keep']>[1]
  /** There may be something to start. */
  readonly pump: (lane: Lane) => void
  readonly settled: (lane: Lane, entry: Entry) => void
  /** What the lane may start has changed. */
  readonly said: (lane: Lane) => void
}

export class AssignedLanes {
  readonly byKey = new Map<string, Lane>()
  readonly #unfinished = new UnfinishedTable()
  /** Transactional producers on their way out. */
  readonly #leaving = new Set<Promise<void>>()
  #epoch = 0
  #memberId: string | undefined

  constructor(readonly options: AssignedLanesOptions) {}

  /** Whether there has been an assignment, be it an empty one. */
  get assigned(): boolean {
    return this.#epoch > 0
  }

  get(where: TopicPartition): Lane | undefined {
    return this.byKey.get(laneKey(where))
  }

  take({ memberId, partitions }: Assignment): void {
    const { group, stopping, tierName, unreadable } = this.options
    this.#epoch++
    const same = memberId === this.#memberId
    this.#memberId = memberId
    const before = this.byKey.size
    const assigned = new Set(partitions.map(laneKey))
    let dropped = 0
    for (const [key, lane] of this.byKey) {
      if (same && assigned.has(key)) continue
      dropped += this.#close(lane)
    }
    const kept = this.byKey.size
    unreadable.keep(assigned)
    for (const where of partitions) {
      const lane = this.get(where)
      if (lane) this.#keep(lane)
      else this.#add(where)
    }
    group.emitter.emit('rebalanced', {
      tier: tierName,
      assigned: this.byKey.size,
      added: this.byKey.size - kept,
      removed: before - kept,
      kept,
      dropped,
    })
    if (this.byKey.size > 0 && !stopping()) void this.#open([...this.byKey.values()])
    // What is to be published is committed with the offset, so the stop waits for lanes that have such.
    else void this.#open([...this.byKey.values()].filter(({ transactions }) => (transactions?.pending ?? 0) > 0))
  }

  /** The member is out of the group: its partitions go to others, and what has not started here goes with them. */
  drop(): void {
    for (const lane of this.byKey.values()) this.#close(lane)
    this.options.unreadable.keep(new Set())
  }

  /** The record of a lane that is closed has ended. */
  forget(lane: Lane, entry: Entry): void {
    this.#unfinished.forget(lane, entry)
  }

  /** What the lane knows is of a log that is no more: what waits is dropped, and what runs ends for nothing. */
  remade(lane: Lane, low: bigint): void {
    const { committer, consumer, group } = this.options
    group.emitter.emit('problem', {
      where: laneKey(lane),
      error: `the topic was deleted and made anew: it is read from its beginning, ${low}, and not on from ${lane.position}`,
    })
    this.#close(lane)
    this.#unfinished.drop(lane)
    const fresh = this.#add(lane)
    const begin = (): void => {
      // An assignment meanwhile has opened it.
      if (fresh.state !== 'opening') return
      fresh.dirty = true
      fresh.open(low, undefined)
      consumer.seek(fresh, low)
      fresh.transactions?.verified(undefined)
      committer.poke()
    }
    if (fresh.transactions) void fresh.transactions.takeOver().then(begin)
    else begin()
  }

  closeTransactions(): void {
    for (const lane of this.byKey.values()) this.#closeTransactions(lane)
  }

  /** Resolves when the transactional producers of all lanes that were closed are gone. */
  async close(): Promise<void> {
    for (const lane of this.byKey.values()) {
      lane.close()
      this.options.guard?.closed(lane)
    }
    await Promise.all(this.#leaving)
  }

  #keep(lane: Lane): void {
    const { consumer, stopping } = this.options
    lane.synced = false
    // A lane that waits for its position stays as it is; the present generation asks for it again.
    if (lane.state === 'open') lane.verify()
    if (lane.position !== undefined) consumer.seek(lane, lane.position)
    if (lane.full || stopping()) consumer.pause(lane)
    else consumer.resume(lane)
  }

  #add(where: TopicPartition): Lane {
    const { committer, consumer, group, guard, said, settled, stopping, tierName } = this.options
    const lane = new Lane(
      where.topic,
      where.partition,
      tierName,
      group.tier !== undefined,
      this.#unfinished.of(where),
      this.#makeQueue,
    )
    guard?.watch(lane)
    lane.transactions = group.makeTransactions?.(lane, {
      groupId: group.groupId,
      committer,
      settled,
      said,
      lost: (one) => this.#lost(one),
    })
    this.byKey.set(laneKey(where), lane)
    if (stopping()) consumer.pause(lane)
    else consumer.resume(lane)
    return lane
  }

  get #makeQueue(): ((lane: Lane) => EntryQueue) | undefined {
    const { group, intake, pump } = this.options
    const { batch, ordering } = group.settings
    if (batch === undefined) {
      return group.tier === undefined && ordering === 'partition' ? (lane) => serialQueue(intake, lane) : undefined
    }
    const { maxRecords, maxBytes, lingerMs } = batch
    return (lane) =>
      new BatchQueue<Entry>({
        maxRecords: () => (lane.crowded || lane.caution !== undefined ? 1 : maxRecords),
        maxBytes,
        lingerMs,
        clock: group.clock,
        // It waits for a call that runs already.
        isAlone: ({ offset }) => lane.unfinished?.has(offset) === true,
        wake: () => pump(lane),
      })
  }

  /** Returns how many records that had not started are dropped. */
  #close(lane: Lane): number {
    this.byKey.delete(laneKey(lane))
    this.#unfinished.keep(lane, this.options.running())
    this.#closeTransactions(lane)
    const dropped = lane.close()
    this.options.guard?.closed(lane)
    return dropped
  }

  #closeTransactions({ transactions }: Lane): void {
    if (transactions === undefined) return
    const left = transactions.close().finally(() => this.#leaving.delete(left))
    this.#leaving.add(left)
  }

  #lost(lane: Lane): void {
    // Where it is being verified anyway, that asks for its transactions as well.
    if (lane.state !== 'open') return
    lane.verify()
    void this.#open([lane])
  }

  async #prepare(lanes: readonly Lane[]): Promise<readonly Lane[]> {
    const all = Promise.all(lanes.map(async ({ transactions }) => transactions?.takeOver()))
    await Promise.race([all, this.options.waits.wait(SLOW_MS)])
    // One that waits for its broker must not hold up the others.
    return lanes.filter(({ transactions }) => transactions?.ready !== false)
  }

  #open(lanes: readonly Lane[]): Promise<void> {
    const { closing, committer, consumer, group, guard, pump, stopping, waits } = this.options
    const { admin, emitter, groupId, settings, tier, topology } = group
    const exactly = group.makeTransactions !== undefined
    return openLanes(
      {
        admin,
        emitter,
        groupId,
        startFrom: tier === undefined ? settings.startFrom : 'earliest',
        formerGroups:
          tier === undefined ? [] : [...topology.formerGroupIds].map((former) => tierGroupId(former, tier.delayMs)),
        epoch: () => this.#epoch,
        stopped: () => (exactly ? closing() : stopping()),
        wait: (ms) => waits.wait(ms),
        ...(exactly && { prepare: (asked: readonly Lane[]) => this.#prepare(asked) }),
        settledOffsets: (asked) => consumer.settledOffsets(asked),
        ready: () => consumer.running,
        commit: (entries) => consumer.commit(entries),
        open: (lane, position, committed, { done, marks }) => {
          lane.open(position, committed, done)
          // A rebalance may have come while it was opening.
          if (lane.marks) lane.marks.clean = stopping()
          guard?.opened(lane, marks)
          consumer.seek(lane, position)
          lane.transactions?.verified(committed)
          if (lane.dirty) committer.poke()
        },
        goOn: (lane) => {
          lane.state = 'open'
          lane.wake()
          if (!stopping()) lane.marks?.again(lane)
          lane.transactions?.verified(lane.committed)
          if (lane.dirty) committer.poke()
          pump(lane)
        },
        reopen: (lane, committed, { done, marks }) => {
          this.#close(lane)
          const fresh = this.#add(lane)
          if (exactly) {
            // Somebody else was at work: whoever that was must be kept from it before the offset counts.
            void this.#open([fresh])
            return
          }
          fresh.open(committed.offset, committed, done)
          guard?.opened(fresh, marks)
          consumer.seek(fresh, committed.offset)
        },
        remade: (lane, low) => this.remade(lane, low),
      },
      lanes,
    )
  }
}
