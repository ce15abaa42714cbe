/**
 * Sends the frontiers of one group's lanes to the broker, and what is settled beyond them; few, and in one request.
 *
 * States:  idle -> scheduled -> in flight -> idle | scheduled
 *   - the offsets are chosen and handed to the client in one synchronous step, in a macrotask of their own: only then do
 *     they surely belong to the generation that the client is in.
 *   - one commit is in flight; after an error the offsets are chosen anew, never sent again.
 *
 * Must never happen: two commits in flight; an offset below one that was acknowledged for the same lane; an offset of a
 * lane that is not open; a commit that is tried a second time as it was.
 */
import { errorText, type Emitter } from '../observe'
import type { Clock, CommitEntry, Timer } from '../ports'
import { MAX_METADATA } from './done-beyond'
import type { Entry, Lane } from './lane'
import {
  draftCommit,
  draftLeast,
  isSame,
  noteAcknowledged,
  noteRefused,
  noteSent,
  type CommitDraft,
} from './lane-commit'

/** How soon an offset is committed that settles after a quiet time, ms: several that settle together go together. */
const SOON_MS = 10
const RETRY = { firstMs: 100, maxMs: 5_000 }
/** How often it is looked whether the client can commit, at the most; usually `awake()` tells sooner. ms. */
const LOOK_MS = 1_000
/** From so many characters on a lane holds back; what settles until then, and what is at work, must still find room. */
const CROWDED = (MAX_METADATA * 3) / 4
/** Lanes do not wait longer than this for an answer before they start what it does not cover yet, ms. */
export const LATE_MS = 1_000

export interface CommitterOptions {
  readonly clock: Clock
  readonly emitter: Emitter
  readonly tier: string
  /** The least time between two commits, ms. */
  readonly intervalMs: number
  lanes(): Iterable<Lane>
  /** Whether the client can commit at present. */
  ready(): boolean
  commit(entries: readonly CommitEntry[]): Promise<void>
  /** What the lane may start, or whether it is guarded at all, has changed. */
  said(lane: Lane): void
  /** A commit of the lane was answered, whatever was said. */
  answered?(lane: Lane): void
}

export interface Committer {
  /** What is to be committed once these entries are settled too; undefined where the metadata cannot tell all of it. */
  asIf(lane: Lane, entries: readonly Entry[]): CommitDraft | undefined
  /** A commit of a lane that was sent otherwise was refused. */
  refused(error: unknown): void
  /** A frontier has moved. */
  poke(): void
  /** The client may be able to commit now, if it was not. */
  awake(): void
  /** A lane waits, or soon will, for what its next commit says: it goes at once, unless the last one has failed. */
  hurry(): void
  /** Commits at once, synchronously as far as the request: for a rebalance, while the broker still takes it. */
  now(): void
  /** Commits until nothing is left to commit, it is refused `tries` times, or `expired()`. */
  flush(tries: number, expired: () => boolean): Promise<void>
  close(): void
}

export function createCommitter(options: CommitterOptions): Committer {
  const { clock, emitter, tier } = options
  let timer: Timer | undefined
  let inFlight: Promise<boolean> | undefined
  let lastAt = -Infinity
  let failures = 0
  let closed = false
  /** Less for good where the broker's limit is below its default: a stuck record must not keep the whole group from committing. */
  let room: Room = 'default'
  /** What waits for the end of the commit in flight does not wait for the interval. */
  let hurried = false
  /** How often in a row the client could not commit. */
  let asleep = 0

  function poke(): void {
    if (timer !== undefined || inFlight !== undefined || closed) return
    const wait = failures > 0 ? Math.min(RETRY.firstMs * 2 ** (failures - 1), RETRY.maxMs) : 0
    const due = lastAt + options.intervalMs - clock.monotonic()
    const soon = Math.min(SOON_MS * 2 ** asleep, LOOK_MS)
    timer = clock.after(Math.max(soon, wait, due), () => {
      timer = undefined
      send()
    })
  }

  function hurry(): void {
    if (failures > 0 || closed) return poke()
    hurried = true
    if (inFlight !== undefined) return
    timer?.cancel()
    timer = clock.soon(() => {
      timer = undefined
      send()
    })
  }

  function awake(): void {
    if (asleep === 0 || !options.ready()) return
    asleep = 0
    unschedule()
    pokeIfDirty()
  }

  function send(): void {
    if (inFlight !== undefined || closed) return
    hurried = false
    if (!options.ready()) {
      asleep++
      pokeIfDirty()
      return
    }
    asleep = 0
    const { chosen, held } = choose(options.lanes(), room)
    for (const lane of held) options.said(lane)
    if (chosen.length === 0) return
    const startedAt = (lastAt = clock.monotonic())
    // Lanes that nobody guards do not wait.
    const guarded = chosen.some(({ draft }) => draft.mark !== undefined)
    const late = guarded ? clock.after(LATE_MS, () => lift(chosen)) : undefined
    // Nothing may stand between the choice and the call.
    inFlight = options.commit(chosen.map(entryOf)).then(
      () => {
        failures = 0
        for (const { lane, draft, turn } of chosen) {
          noteAcknowledged(lane, draft)
          if (lane.turn === turn) lane.unproven = false
        }
        if (emitter.active.committed) {
          emitter.emit('committed', { tier, partitions: chosen.length, durationMs: clock.monotonic() - startedAt })
        }
        return true
      },
      (error: unknown) => {
        failures++
        for (const { lane } of chosen) {
          lane.dirty = true
          // It may arrive yet; the next that is acknowledged comes after it.
          lane.unproven = lane.transactions !== undefined
        }
        emitter.emit('commitFailed', { tier, partitions: chosen.length, error: errorText(error) })
        refused(error)
        lift(chosen)
        return false
      },
    )
    void inFlight.then((ok) => {
      late?.cancel()
      inFlight = undefined
      for (const { lane } of chosen) {
        lane.committing = false
        options.answered?.(lane)
      }
      if (ok) for (const { lane } of chosen) options.said(lane)
      if (hurried) hurry()
      else pokeIfDirty()
    })
  }

  /** The broker's answer to a commit of one of the lanes, whoever sent it. */
  function refused(error: unknown): void {
    if (room === 'none' || !isMetadataTooLarge(error)) return
    if (room === 'as before') {
      room = 'none'
      return
    }
    room = 'as before'
    for (const lane of options.lanes()) unguard(lane)
    emitter.emit('problem', { where: `commits (${tier})`, error: NO_METADATA })
  }

  function lift(chosen: readonly Chosen[]): void {
    for (const { lane } of chosen) {
      noteRefused(lane)
      options.said(lane)
    }
  }

  function pokeIfDirty(): void {
    for (const lane of options.lanes()) if (lane.dirty && !lane.transacting) return poke()
  }

  function unschedule(): void {
    timer?.cancel()
    timer = undefined
  }

  async function flush(tries: number, expired: () => boolean): Promise<void> {
    unschedule()
    for (let left = tries; left > 0 && !expired();) {
      if (inFlight !== undefined) {
        await inFlight
        unschedule()
        continue
      }
      await new Promise<void>((resolve) => {
        clock.soon(() => {
          send()
          resolve()
        })
      })
      const pending = inFlight as Promise<boolean> | undefined
      unschedule()
      if (pending === undefined) return
      if (!(await pending)) left--
    }
    unschedule()
  }

  return {
    poke,
    asIf(lane, entries) {
      if (room !== 'default') unguard(lane)
      const draft = draftFor(lane, room, new Set(entries))
      return draft.all && draft.offset >= (lane.committed?.offset ?? 0n) ? draft : undefined
    },
    refused,
    awake,
    hurry,
    now() {
      unschedule()
      if (inFlight !== undefined) hurried = true
      else send()
    },
    flush,
    close() {
      closed = true
      unschedule()
    },
  }
}

const NO_METADATA =
  'the broker takes less metadata than by its default: set its offset.metadata.max.bytes to 4096. Until a restart after that, ' +
  'what is done behind a record that is stuck is done again after a crash, and crash loops are not found out'

/** By the name that Kafka gives it. */
function isMetadataTooLarge(error: unknown): boolean {
  return (error as { type?: unknown } | null | undefined)?.type === 'OFFSET_METADATA_TOO_LARGE'
}

interface Chosen {
  readonly lane: Lane
  readonly draft: CommitDraft
  readonly turn: number
}

function entryOf({ lane: { topic, partition }, draft: { offset, metadata } }: Chosen): CommitEntry {
  return { topic, partition, offset, metadata }
}

/** How much metadata the broker takes: as by its default; as much as it has taken before, of a lane; none. */
type Room = 'default' | 'as before' | 'none'

/** `held`: lanes whose present commit is the one that the broker holds already, or one that may not be made. */
function choose(lanes: Iterable<Lane>, room: Room): { chosen: Chosen[]; held: Lane[] } {
  const chosen: Chosen[] = []
  const held: Lane[] = []
  for (const lane of lanes) {
    if (lane.state !== 'open' || !lane.dirty || lane.transacting) continue
    lane.dirty = false
    if (room !== 'default') unguard(lane)
    const { committed } = lane
    const draft = draftFor(lane, room)
    lane.crowded = room === 'default' && (!draft.whole || draft.metadata.length > CROWDED)
    // What it left out may have been published, and would be once more after a crash: the commit of before says it.
    const forgets = !draft.all && lane.transactions !== undefined
    if (forgets || (committed !== undefined && draft.offset < committed.offset)) {
      // There is nothing that could be said: the lane must not wait for it.
      noteRefused(lane)
      held.push(lane)
      continue
    }
    if (committed !== undefined && lane.sent.length === 0 && isSame(draft, committed) && !lane.unproven) {
      noteAcknowledged(lane, draft)
      held.push(lane)
      continue
    }
    noteSent(lane, draft)
    lane.committing = true
    chosen.push({ lane, draft, turn: lane.turn })
  }
  return { chosen, held }
}

/** `whole`: it says all that is done. `all`: all that must be said. */
function draftFor(lane: Lane, room: Room, settled?: ReadonlySet<Entry>): CommitDraft & { readonly whole: boolean } {
  const full = draftCommit(lane, settled)
  if (full.all && (room === 'default' || full.isPlain)) return { ...full, whole: true }
  if (lane.transactions === undefined) {
    // What is left out is done again after a crash, which is allowed.
    return { ...full, metadata: room === 'default' ? full.metadata : '', whole: false }
  }
  const least = draftLeast(lane, settled)
  const taken =
    room === 'default' || least.metadata.length <= (room === 'none' ? 0 : (lane.known?.metadata.length ?? 0))
  return { ...least, all: least.all && taken, whole: false }
}

/** Marks find no room: the lane goes on as one that nobody guards. */
function unguard(lane: Lane): void {
  noteRefused(lane)
  lane.marks = undefined
  lane.caution = undefined
}
