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
import { MAX_METADATA, packDone } from './done-beyond'
import type { Commit, Lane } from './lane'

/** How soon an offset is committed that settles after a quiet time, ms: several that settle together go together. */
const SOON_MS = 10
const RETRY = { firstMs: 100, maxMs: 5_000 }
/** From so many characters on a lane holds back; what settles until then, and what is at work, must still find room. */
const CROWDED = (MAX_METADATA * 3) / 4

/** A broker that refuses commits for hours must not cost memory; forgotten too early, a kept lane is begun anew. */
const MAX_SENT = 100

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
}

export interface Committer {
  /** A frontier has moved. */
  poke(): void
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
  /** Cleared for good where the broker's limit is below its default: a stuck record must not keep the whole group from committing. */
  let withMetadata = true

  function poke(): void {
    if (timer !== undefined || inFlight !== undefined || closed) return
    const wait = failures > 0 ? Math.min(RETRY.firstMs * 2 ** (failures - 1), RETRY.maxMs) : 0
    const due = lastAt + options.intervalMs - clock.monotonic()
    timer = clock.after(Math.max(SOON_MS, wait, due), () => {
      timer = undefined
      send()
    })
  }

  function send(): void {
    if (inFlight !== undefined || closed) return
    if (!options.ready()) {
      pokeIfDirty()
      return
    }
    const chosen = choose(options.lanes(), withMetadata)
    if (chosen.length === 0) return
    const startedAt = (lastAt = clock.monotonic())
    // Nothing may stand between the choice and the call.
    inFlight = options.commit(chosen.map(({ entry }) => entry)).then(
      () => {
        failures = 0
        for (const { lane, entry } of chosen) acknowledge(lane, entry)
        if (emitter.active.committed) {
          emitter.emit('committed', { tier, partitions: chosen.length, durationMs: clock.monotonic() - startedAt })
        }
        return true
      },
      (error: unknown) => {
        failures++
        for (const { lane } of chosen) lane.dirty = true
        emitter.emit('commitFailed', { tier, partitions: chosen.length, error: errorText(error) })
        if (withMetadata && isMetadataTooLarge(error)) {
          withMetadata = false
          emitter.emit('problem', { where: `commits (${tier})`, error: NO_METADATA })
        }
        return false
      },
    )
    void inFlight.then(() => {
      inFlight = undefined
      pokeIfDirty()
    })
  }

  function pokeIfDirty(): void {
    for (const lane of options.lanes()) if (lane.dirty) return poke()
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
    now() {
      unschedule()
      send()
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
  'what is done behind a record that is stuck is done again after a crash'

/** By the name that Kafka gives it. */
function isMetadataTooLarge(error: unknown): boolean {
  return (error as { type?: unknown } | null | undefined)?.type === 'OFFSET_METADATA_TOO_LARGE'
}

function choose(lanes: Iterable<Lane>, withMetadata: boolean): { lane: Lane; entry: CommitEntry }[] {
  const chosen: { lane: Lane; entry: CommitEntry }[] = []
  for (const lane of lanes) {
    if (lane.state !== 'open' || !lane.dirty) continue
    lane.dirty = false
    const { committed } = lane
    const offset = lane.tracker.frontier
    if (committed !== undefined && offset < committed.offset) continue
    const metadata = withMetadata ? packDone(offset, lane.tracker.beyond()) : ''
    lane.crowded = metadata.length > CROWDED
    const commit = { offset, metadata }
    if (committed !== undefined && isSame(commit, committed)) continue
    lane.sent.push(commit)
    if (lane.sent.length > MAX_SENT) lane.sent.shift()
    chosen.push({ lane, entry: { topic: lane.topic, partition: lane.partition, ...commit } })
  }
  return chosen
}

function acknowledge(lane: Lane, { offset, metadata }: CommitEntry): void {
  if (lane.committed !== undefined && offset < lane.committed.offset) return
  lane.committed = { offset, metadata }
  lane.sent = []
}

export function isSame(a: Commit, b: Commit): boolean {
  return a.offset === b.offset && a.metadata === b.metadata
}
