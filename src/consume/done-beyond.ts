/**
 * Which offsets beyond a committed one are done, as text for the commit's metadata: what another member, or this one
 * after a crash, need not handle again. Marks of deaths stand in front of it, see crash-marks.ts.
 *
 * `rl1:<marks>b<bits>` or `rl1:<marks>r<runs>`, whichever is shorter; without anything done `rl1:<marks>`, and without
 * marks either nothing at all. Bits: the first stands for the offset behind the committed one,
 * six to a character. Runs: how many are open, how many are done, and so on, each a number in base 32, least digit first,
 * with 32 added to every digit but its last. Characters are those of base64url, since every tool shows them as they are.
 *
 * Must never happen: an offset said to be done that is not (it would be skipped, so lost). Said to be open though done:
 * handled twice, which is allowed.
 */

import { MARKS_ROOM, NO_MARKS, packMarks, unpackMarks, type CrashMarks } from './crash-marks'

/** Offsets from `from` up to, and without, `to`. */
export interface OffsetRange {
  readonly from: bigint
  readonly to: bigint
}

/** The broker's limit is 4,096 characters by default (`offset.metadata.max.bytes`), and one entry above it fails them all. */
export const MAX_METADATA = 4_000

const PREFIX = 'rl1:'
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const VALUES: ReadonlyMap<string, number> = new Map([...ALPHABET].map((character, value) => [character, value]))
/** The same whatever the marks: a mark must not wait for want of room, nor push out what was said before it. */
const ROOM = MAX_METADATA - PREFIX.length - 1 - MARKS_ROOM
/** Two numbers of 64 bits, rounded up. */
const LONGEST_RUN = 32
/** No metadata of ours reaches further beyond its offset; more is not ours, and would only cost memory. */
const MAX_REACH = 2 ** 40

/** `ranges` are in order, apart, and beyond `base`. What does not fit is left out from the end, and counts as open. */
export function packDone(base: bigint, ranges: readonly OffsetRange[], marks: CrashMarks = NO_MARKS): string {
  const front = packMarks(base, marks)
  const text = front + (ranges.length === 0 ? '' : bodyOf(base, ranges))
  return text === '' ? '' : PREFIX + text
}

function bodyOf(base: bigint, ranges: readonly OffsetRange[]): string {
  const runs = asRuns(base, ranges, ROOM)
  const bits = asBits(base, ranges, runs.cut ? ROOM : runs.text.length - 1)
  const body = bits === undefined ? `r${runs.text}` : `b${bits}`
  return body.length === 1 ? '' : body
}

function asRuns(base: bigint, ranges: readonly OffsetRange[], room: number): { text: string; cut: boolean } {
  let text = ''
  let at = base
  for (const { from, to } of ranges) {
    const run = asNumber(Number(from - at)) + asNumber(Number(to - from))
    if (text.length + run.length > room) return { text, cut: true }
    text += run
    at = to
  }
  return { text, cut: false }
}

/** Undefined where it would take more than `room` characters and so is not worth it. */
function asBits(base: bigint, ranges: readonly OffsetRange[], room: number): string | undefined {
  const last = ranges[ranges.length - 1]!
  const reach = last.to - base - 1n
  if (reach > BigInt(room * 6)) return undefined
  const sextets = new Uint8Array(Math.ceil(Number(reach) / 6))
  for (const { from, to } of ranges) {
    const end = Number(to - base) - 1
    for (let bit = Number(from - base) - 1; bit < end; bit++) sextets[Math.floor(bit / 6)]! |= 1 << (bit % 6)
  }
  let text = ''
  for (const value of sextets) text += ALPHABET[value]
  return text
}

function asNumber(value: number): string {
  let text = ''
  let rest = value
  while (rest >= 32) {
    text += ALPHABET[32 + (rest % 32)]
    rest = Math.floor(rest / 32)
  }
  return text + ALPHABET[rest]
}

export interface Told {
  readonly done: readonly OffsetRange[]
  readonly marks: CrashMarks
}

const NOTHING: Told = { done: [], marks: NO_MARKS }

/** Whether the text says all of it: what did not fit is left out from the end. */
export function saysAll(base: bigint, ranges: readonly OffsetRange[], metadata: string): boolean {
  const last = ranges[ranges.length - 1]
  if (last === undefined || (metadata !== '' && metadata.length < ROOM - LONGEST_RUN)) return true
  return unpackDone(base, metadata)?.at(-1)?.to === last.to
}

/** Undefined where the text is not ours or makes no sense; then nothing beyond the offset counts as done. */
export function unpackCommit(base: bigint, metadata: string): Told | undefined {
  if (metadata === '') return NOTHING
  if (metadata.length > MAX_METADATA || !metadata.startsWith(PREFIX)) return undefined
  const front = unpackMarks(base, metadata.slice(PREFIX.length))
  if (front === undefined) return undefined
  const { marks, rest } = front
  if (rest === '') return marks === NO_MARKS ? undefined : { done: [], marks }
  const done = unpackBody(base, rest)
  return done && { done, marks }
}

/** What is done, of `unpackCommit`. */
export function unpackDone(base: bigint, metadata: string): readonly OffsetRange[] | undefined {
  return unpackCommit(base, metadata)?.done
}

function unpackBody(base: bigint, body: string): OffsetRange[] | undefined {
  const values: number[] = []
  for (const character of body.slice(1)) {
    const value = VALUES.get(character)
    if (value === undefined) return undefined
    values.push(value)
  }
  if (values.length === 0) return undefined
  if (body.startsWith('b')) return fromBits(base, values)
  return body.startsWith('r') ? fromRuns(base, values) : undefined
}

function fromBits(base: bigint, sextets: readonly number[]): OffsetRange[] {
  const ranges: OffsetRange[] = []
  let from: number | undefined
  for (let bit = 0; bit <= sextets.length * 6; bit++) {
    const done = ((sextets[Math.floor(bit / 6)] ?? 0) >> (bit % 6)) & 1
    if (done === 1) from ??= bit
    else if (from !== undefined) {
      ranges.push({ from: base + BigInt(from + 1), to: base + BigInt(bit + 1) })
      from = undefined
    }
  }
  return ranges
}

function fromRuns(base: bigint, digits: readonly number[]): OffsetRange[] | undefined {
  const ranges: OffsetRange[] = []
  let at = 0
  let open: number | undefined
  let value = 0
  let scale = 1
  for (const digit of digits) {
    value += (digit % 32) * scale
    scale *= 32
    if (value > MAX_REACH) return undefined
    if (digit >= 32) continue
    if (open === undefined) open = value
    else {
      // The record at the committed offset is open by the meaning of a commit, and no run is empty.
      if (value === 0 || open === 0) return undefined
      ranges.push({ from: base + BigInt(at + open), to: base + BigInt(at + open + value) })
      at += open + value
      open = undefined
    }
    value = 0
    scale = 1
  }
  return open === undefined && scale === 1 ? ranges : undefined
}

/** Answers for offsets that are asked for in rising order, as a partition delivers them. */
export class DoneBeyond {
  #at = 0

  constructor(private readonly ranges: readonly OffsetRange[]) {}

  /** What is done from `from` on. */
  rest(from: bigint): OffsetRange[] {
    return this.ranges
      .filter(({ to }) => to > from)
      .map((range) => (range.from < from ? { from, to: range.to } : range))
  }

  /** Whether no offset from `offset` on is done. */
  isPast(offset: bigint): boolean {
    const last = this.ranges[this.ranges.length - 1]
    return last === undefined || offset >= last.to
  }

  has(offset: bigint): boolean {
    while (this.#at < this.ranges.length && this.ranges[this.#at]!.to <= offset) this.#at++
    const range = this.ranges[this.#at]
    return range !== undefined && range.from <= offset
  }
}
