import type { Clock } from '../ports'
import type { Group } from './group'
import type { Lane } from './lane'
import type { Outage } from './outages'

export interface PartitionHealth {
  readonly topic: string
  readonly partition: number
  /**
   * `ok`; `waiting` (holds only records that are not due yet); `paused` (by `pause()`, here or in a handler); `full`
   * (has all the records there is room for); `opening` and `verifying` (asks the broker where the group stands);
   * `blocked` (a copy cannot be published, so the offset waits); `unreadable` (the next batch cannot be decoded, see
   * `unreadable`); `held` (a dependency is down, see `heldBy`); `careful` (a process has died at work here: the records that
   * may have been the cause run one at a time).
   */
  readonly state:
    'ok' | 'waiting' | 'paused' | 'full' | 'opening' | 'verifying' | 'blocked' | 'unreadable' | 'held' | 'careful'
  /** While `opening` or `verifying`: for how long, ms. */
  readonly openingMs?: number
  /** Exactly-once: why the partition's transactional id cannot be taken over. Until it is, nothing of it is handled. */
  readonly notTakenOver?: string
  /** What is wrong with the batch at `position`. */
  readonly unreadable?: string
  /** The dependency that the partition waits for. */
  readonly heldBy?: string
  /** The next offset to be fetched; decimal text. */
  readonly position: string | undefined
  /** What the broker last acknowledged; decimal text. */
  readonly committed: string | undefined
  /** Records in memory that are not settled. */
  readonly held: number
  /** Of these, in a handler now; with `batchHandler` batches. */
  readonly running: number
  /** How long the oldest of these has been there, ms. */
  readonly oldestRunningMs: number
  /** When the next retry is due, ms since the epoch. */
  readonly nextDueAt?: number
}

export interface GroupHealth {
  readonly groupId: string
  /** `main`, or the canonical delay of the tier. */
  readonly tier: string
  /** `ok`; `joining`; `crashed` (and on its way back); `silent` (the broker has answered no fetch for 10 s). */
  readonly state: 'ok' | 'joining' | 'crashed' | 'silent'
  /** The error of the crash. */
  readonly error?: string
  readonly partitions: readonly PartitionHealth[]
}

/** Everything in it can be given to JSON.stringify. */
export interface Health {
  /**
   * `ok` only where every group is `ok` and no partition is `blocked`, `unreadable`, `opening` for 10 s, or refused its
   * transactional id; `degraded` says that somebody should
   * look; `held` that nothing is wrong here, but partitions wait for a dependency: see `outages`.
   */
  readonly status: 'idle' | 'starting' | 'ok' | 'paused' | 'held' | 'degraded' | 'stopping' | 'stopped'
  /** One line for each reason of `degraded`. */
  readonly problems: readonly string[]
  readonly groups: readonly GroupHealth[]
  /** Dependencies that handlers have found down. */
  readonly outages: readonly Outage[]
}

/** So long without an answer to a fetch, which comes every 200 ms when idle, is more than a hiccup. ms. */
const SILENT_MS = 10_000
/** So long without an answer to where the group stands is more than a hiccup too. ms. */
const OPENING_MS = 10_000

export function groupHealth(group: Group, clock: Clock, isPaused: (lane: Lane) => boolean): GroupHealth {
  // On a manual clock an hour passes between two fetches; there silence means nothing.
  const silent = clock.track === undefined && (group.silentMs ?? 0) > SILENT_MS
  const state = group.crashed !== undefined ? 'crashed' : silent ? 'silent' : group.assigned ? 'ok' : 'joining'
  // In order of start, so the first of a lane is its oldest.
  const oldest = new Map<Lane, number>()
  for (const { lane, startedAt } of group.processor.runner.watchdog.running) {
    if (!oldest.has(lane)) oldest.set(lane, startedAt)
  }
  return {
    groupId: group.groupId,
    tier: group.tierName,
    state,
    ...(group.crashed !== undefined && { error: group.crashed }),
    partitions: [...group.lanes.values()].map((lane) =>
      partitionHealth(lane, clock, isPaused(lane), oldest.get(lane), group.unreadable.of(lane), group.assignedMs),
    ),
  }
}

function partitionHealth(
  lane: Lane,
  clock: Clock,
  paused: boolean,
  oldest: number | undefined,
  unreadable: string | undefined,
  assignedMs: number,
): PartitionHealth {
  const nextDueAt = lane.queue.nextDue()
  return {
    topic: lane.topic,
    partition: lane.partition,
    state: lane.troubled === 0 && unreadable !== undefined ? 'unreadable' : stateOf(lane, clock, paused, nextDueAt),
    position: lane.position?.toString(),
    committed: lane.committed?.offset.toString(),
    held: lane.held,
    running: lane.running,
    oldestRunningMs: oldest === undefined ? 0 : Math.round(clock.monotonic() - oldest),
    ...(nextDueAt !== undefined && nextDueAt > 0 && { nextDueAt }),
    ...((lane.state === 'opening' || lane.state === 'verifying') && { openingMs: Math.round(assignedMs) }),
    ...(lane.transactions?.refused !== undefined && { notTakenOver: lane.transactions.refused }),
    ...(unreadable !== undefined && { unreadable }),
    ...(lane.heldBy !== undefined && { heldBy: lane.heldBy }),
  }
}

function stateOf(lane: Lane, clock: Clock, paused: boolean, nextDueAt: number | undefined): PartitionHealth['state'] {
  // After a failed transaction a lane is verified again and again, which is not what is wrong with it.
  if (lane.troubled > 0 && lane.transactions !== undefined) return 'blocked'
  if (lane.state === 'opening' || lane.state === 'verifying') return lane.state
  if (lane.troubled > 0) return 'blocked'
  if (paused || lane.handlerPauses > 0) return 'paused'
  if (lane.heldBy !== undefined) return 'held'
  if (lane.caution !== undefined) return 'careful'
  if (lane.full) return 'full'
  return lane.running === 0 && nextDueAt !== undefined && nextDueAt > clock.now() ? 'waiting' : 'ok'
}

export function problemsOf(groups: readonly GroupHealth[]): string[] {
  return groups.flatMap((group) => [
    ...(group.state === 'crashed' ? [`group ${group.groupId} has crashed: ${group.error}`] : []),
    ...(group.state === 'silent' ? [`group ${group.groupId}: no fetch was answered for ${SILENT_MS / 1000} s`] : []),
    ...group.partitions
      .filter(({ state }) => state === 'blocked')
      .map(({ topic, partition }) => `${topic}/${partition} waits: a copy of a failed record cannot be published`),
    ...group.partitions.flatMap(({ topic, partition, notTakenOver }) =>
      notTakenOver === undefined
        ? []
        : [`${topic}/${partition} waits: its transactional id cannot be taken over: ${notTakenOver}`],
    ),
    ...group.partitions
      .filter(({ openingMs = 0, notTakenOver }) => openingMs > OPENING_MS && notTakenOver === undefined)
      .map(
        ({ topic, partition, openingMs = 0 }) =>
          `${topic}/${partition} has not begun for ${Math.round(openingMs / 1000)} s: where ${group.groupId} stands there cannot be read`,
      ),
    ...group.partitions.flatMap(({ topic, partition, position, unreadable }) =>
      unreadable === undefined
        ? []
        : [`${topic}/${partition} waits at ${position}: a batch cannot be read: ${unreadable}`],
    ),
  ])
}
