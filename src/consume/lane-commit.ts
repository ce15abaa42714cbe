/**
 * What a commit says of one lane: made, sent, and then acknowledged or refused. The committer sends it by itself; who
 * commits in another way (a transaction) uses the same four steps, with `lane.transacting` set meanwhile.
 */
import { packDone, saysAll, type OffsetRange } from './done-beyond'
import type { Commit, Entry, Lane } from './lane'
import type { MarkDraft } from './lane-marks'

/** A broker that refuses commits for hours must not cost memory; forgotten too early, a kept lane is begun anew. */
const MAX_SENT = 100

export interface CommitDraft extends Commit {
  /** Undefined where crashes are not guarded against. */
  readonly mark: MarkDraft | undefined
  /** Nothing is done beyond the offset. */
  readonly isPlain: boolean
  /** The metadata says all that is done beyond it. */
  readonly all: boolean
}

/** The commit of the lane as it stands or, with `settled`, as if these records were settled too. Changes nothing. */
export function draftCommit(lane: Lane, settled?: ReadonlySet<Entry>): CommitDraft {
  const { frontier, beyond: met, unpassed } = settled ? lane.tracker.asIf(settled) : asItIs(lane)
  // What was done before the lane was, and has not been fetched again, must not be forgotten.
  const { offset, beyond } =
    lane.done === undefined
      ? { offset: frontier, beyond: met }
      : withRest(frontier, met, lane.done.rest(lane.tracker.end))
  const mark = lane.marks?.draft(lane, offset, lane.added - unpassed)
  const metadata = packDone(offset, beyond, mark?.marks)
  return { offset, metadata, mark, isPlain: beyond.length === 0, all: saysAll(offset, beyond, metadata) }
}

function withRest(
  offset: bigint,
  beyond: readonly OffsetRange[],
  rest: readonly OffsetRange[],
): { offset: bigint; beyond: readonly OffsetRange[] } {
  const [first] = rest
  if (first === undefined) return { offset, beyond }
  const last = beyond[beyond.length - 1]
  if (last !== undefined && first.from <= last.to) {
    return { offset, beyond: [...beyond.slice(0, -1), { from: last.from, to: first.to }, ...rest.slice(1)] }
  }
  if (last === undefined && first.from <= offset) return { offset: first.to, beyond: rest.slice(1) }
  return { offset, beyond: [...beyond, ...rest] }
}

function asItIs({ tracker }: Lane): { frontier: bigint; beyond: readonly OffsetRange[]; unpassed: number } {
  return { frontier: tracker.frontier, beyond: tracker.beyond(), unpassed: tracker.length }
}

/** It is on its way, and may be stored whatever is heard of it. */
export function noteSent(lane: Lane, { offset, metadata, mark }: CommitDraft): void {
  lane.sent.push({ offset, metadata })
  if (lane.sent.length > MAX_SENT) lane.sent.shift()
  if (mark) lane.marks?.sent(mark)
}

/** The broker holds it. */
export function noteAcknowledged(lane: Lane, { offset, metadata, mark }: CommitDraft): void {
  if (lane.committed !== undefined && offset < lane.committed.offset) return
  lane.committed = { offset, metadata }
  lane.sent = []
  if (mark) lane.marks?.acknowledge(lane, mark)
}

/** It failed, or nothing is heard of it. */
export function noteRefused(lane: Lane): void {
  lane.marks?.lift(lane)
}

export function isSame(a: Commit, b: Commit): boolean {
  return a.offset === b.offset && a.metadata === b.metadata
}
