/**
 * What a commit says of one lane: made, sent, and then acknowledged or refused. The committer sends it by itself; who
 * commits in another way (a transaction) uses the same four steps, with `lane.transacting` set meanwhile.
 */
import { endOf } from './commit-tracker'
import { DoneBeyond, packDone, saysAll, unpackDone, type OffsetRange } from './done-beyond'
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
  const { frontier, beyond: met, unpassed } = standOf(lane, settled)
  // What was done before the lane was, and has not been fetched again, must not be forgotten.
  return lane.done === undefined
    ? draftOf(lane, unpassed, { offset: frontier, beyond: met })
    : draftOf(lane, unpassed, withRest(frontier, met, lane.done.rest(lane.tracker.end)))
}

/**
 * Exactly-once, where there is no room for all: beside the offset what was published, and nothing else, since that alone would
 * stand twice if it were forgotten. It is in what was committed last, or is `settled` by this commit.
 */
export function draftLeast(lane: Lane, settled?: ReadonlySet<Entry>): CommitDraft {
  const { frontier, unpassed } = standOf(lane, settled)
  const { offset, metadata } = lane.known ?? { offset: 0n, metadata: '' }
  const published = [...(unpackDone(offset, metadata) ?? [])]
  for (const entry of settled ?? []) published.push({ from: BigInt(entry.offset), to: endOf(entry) })
  return draftOf(lane, unpassed, withRest(frontier, [], new DoneBeyond(joined(published)).rest(frontier)))
}

function standOf(
  lane: Lane,
  settled: ReadonlySet<Entry> | undefined,
): { frontier: bigint; beyond: readonly OffsetRange[]; unpassed: number } {
  return settled ? lane.tracker.asIf(settled) : asItIs(lane)
}

interface Stand {
  readonly offset: bigint
  readonly beyond: readonly OffsetRange[]
}

function draftOf(lane: Lane, unpassed: number, { offset, beyond }: Stand): CommitDraft {
  const mark = lane.marks?.draft(lane, offset, lane.added - unpassed)
  const metadata = packDone(offset, beyond, mark?.marks)
  return { offset, metadata, mark, isPlain: beyond.length === 0, all: saysAll(offset, beyond, metadata) }
}

function joined(ranges: OffsetRange[]): OffsetRange[] {
  const list: OffsetRange[] = []
  for (const range of ranges.sort((a, b) => (a.from < b.from ? -1 : 1))) {
    const last = list[list.length - 1]
    if (last === undefined || range.from > last.to) list.push(range)
    else if (range.to > last.to) list[list.length - 1] = { from: last.from, to: range.to }
  }
  return list
}

function withRest(offset: bigint, beyond: readonly OffsetRange[], rest: readonly OffsetRange[]): Stand {
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
export function noteSent(lane: Lane, draft: CommitDraft): void {
  lane.sent.push(draft)
  if (lane.sent.length > MAX_SENT) lane.sent.shift()
  if (draft.mark) lane.marks?.sent(lane, draft.mark)
}

/** It was sent, and it is sure that it was not stored and never will be: who holds the same has it from somebody else. */
export function noteAborted(lane: Lane, draft: CommitDraft): void {
  lane.sent = lane.sent.filter((one) => one !== draft)
}

/** The broker holds it. */
export function noteAcknowledged(lane: Lane, { offset, metadata, mark }: CommitDraft): void {
  if (lane.committed !== undefined && offset < lane.committed.offset) return
  lane.committed = lane.known = { offset, metadata }
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
