/**
 * What a commit says of one lane: made, sent, and then acknowledged or refused. The committer sends it by itself; who
 * commits in another way (a transaction) uses the same four steps, with `lane.transacting` set meanwhile.
 */
import { packDone, type OffsetRange } from './done-beyond'
import type { Commit, Entry, Lane } from './lane'
import type { MarkDraft } from './lane-marks'

/** A broker that refuses commits for hours must not cost memory; forgotten too early, a kept lane is begun anew. */
const MAX_SENT = 100

export interface CommitDraft extends Commit {
  /** Undefined where crashes are not guarded against. */
  readonly mark: MarkDraft | undefined
}

/** The commit of the lane as it stands or, with `settled`, as if these records were settled too. Changes nothing. */
export function draftCommit(lane: Lane, settled?: ReadonlySet<Entry>): CommitDraft {
  const { frontier, beyond, unpassed } = settled ? lane.tracker.asIf(settled) : asItIs(lane)
  const mark = lane.marks?.draft(lane, frontier, lane.added - unpassed)
  return { offset: frontier, metadata: packDone(frontier, beyond, mark?.marks), mark }
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
