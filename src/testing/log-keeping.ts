/**
 * What a broker throws away by itself: segments that are too old or too much, and records that a newer one of their
 * key has replaced.
 *
 * A log is cut into segments: a batch begins a new one where the last is full (`segment.bytes`) or spans too much time
 * (`segment.ms`, by the records' own time stamps). Whole segments go, from the low end, when the newest time stamp in
 * them is older than `retention.ms`, or when the rest is still `retention.bytes`. Compaction touches all but the last
 * segment, once enough of them is new; a tombstone goes with a compaction that comes `delete.retention.ms` after the
 * first that met it.
 *
 * The broker looks every few minutes. Here it is looked only when somebody looks at the log, as of the last such time:
 * nobody can tell the difference.
 */
export interface LogWorld {
  /** Wall time in ms. */
  now(): number
  setting(name: string): string
  /** Looks come every so many ms from a first one on. */
  readonly looks: { readonly first: number; readonly every: number }
}

export interface Segment {
  readonly base: bigint
  bytes: number
  /** The newest time stamp of its first batch, and of all. */
  readonly first: number
  newest: number
}

/** What compaction looks at. */
interface Kept {
  readonly offset: bigint
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly control: boolean
  readonly batch: { readonly size: number; readonly context: { readonly lastOffsetDelta: number } }
}

interface Size {
  readonly bytes: number
  readonly newest: number
}

/** The first look after a time, and the last one until now; nothing where there was none. */
export function looksBetween(world: LogWorld, after: number): { first: number; last: number } | undefined {
  const { first, every } = world.looks
  const count = Math.floor((world.now() - first) / every)
  const last = first + count * every
  if (count < 0 || last <= after) return undefined
  return { first: after < first ? first : first + (Math.floor((after - first) / every) + 1) * every, last }
}

export class Segments {
  readonly all: Segment[] = []

  constructor(private readonly world: LogWorld) {}

  /** Finds place for a batch that is about to be written at `base`. */
  add(base: bigint, { bytes, newest }: Size): void {
    const last = this.all.at(-1)
    if (last === undefined || this.isFull(last, { bytes, newest })) {
      this.all.push({ base, bytes, first: newest, newest })
      return
    }
    last.bytes += bytes
    last.newest = Math.max(last.newest, newest)
  }

  /** How far the log is thrown away by time and size: the base of the first segment that stays, or `end`. */
  cut(now: number, end: bigint): bigint {
    if (!this.policies().includes('delete')) return this.all[0]?.base ?? end
    const time = Number(this.world.setting('retention.ms'))
    const size = Number(this.world.setting('retention.bytes'))
    let surplus = this.all.reduce((sum, { bytes }) => sum + bytes, 0) - size
    let gone = 0
    for (const { newest, bytes } of this.all) {
      const old = time >= 0 && now - newest > time
      const tooMuch = size >= 0 && surplus - bytes >= 0
      if (!old && !tooMuch) break
      surplus -= bytes
      gone++
    }
    return this.all[gone]?.base ?? end
  }

  /** Segments that lie wholly below an offset are no more; the last one stays, unless the log is empty by now. */
  dropBelow(offset: bigint, end: bigint): void {
    if (offset >= end) this.all.length = 0
    while (this.all[1] !== undefined && this.all[1].base <= offset) this.all.shift()
  }

  policies(): string[] {
    return this.world
      .setting('cleanup.policy')
      .split(',')
      .map((one) => one.trim())
  }

  private isFull(last: Segment, { bytes, newest }: Size): boolean {
    const lag = Number(this.world.setting('max.compaction.lag.ms'))
    const span = Number(this.world.setting('segment.ms'))
    const longest = this.policies().includes('compact') ? Math.min(lag, span) : span
    return last.bytes + bytes > Number(this.world.setting('segment.bytes')) || newest - last.first > longest
  }
}

/** Remembers between compactions what was clean already, and since when tombstones are dying. */
export class Compactor {
  private cleanBelow = 0n
  /** When a tombstone may go, by its offset. */
  private readonly horizons = new Map<bigint, number>()

  constructor(
    private readonly world: LogWorld,
    private readonly segments: Segments,
  ) {}

  /** The records that stay; the same list where there is nothing to do. `below`: nothing from there on is touched. */
  run<T extends Kept>(records: readonly T[], now: number, below: bigint): readonly T[] {
    if (!this.segments.policies().includes('compact')) return records
    const to = this.reach(now, below)
    if (to <= this.cleanBelow || !this.isWorthIt(records, to)) return records
    return this.compact(records, now, to)
  }

  /** All below `to`, whether it is worth it or not. */
  compact<T extends Kept>(records: readonly T[], now: number, to: bigint): readonly T[] {
    const newest = new Map<string, bigint>()
    for (const { key, offset, control } of records) {
      if (offset >= to) break
      if (!control && key !== null) newest.set(key.toString('latin1'), offset)
    }
    this.cleanBelow = to
    return records.filter((record) => record.offset >= to || this.stays(record, newest, now))
  }

  private stays({ key, value, offset, control }: Kept, newest: Map<string, bigint>, now: number): boolean {
    if (control) return true
    if (key === null || newest.get(key.toString('latin1')) !== offset) return false
    if (value !== null) return true
    const horizon = this.horizons.get(offset)
    if (horizon === undefined) this.horizons.set(offset, now + Number(this.world.setting('delete.retention.ms')))
    else if (now > horizon) this.horizons.delete(offset)
    return horizon === undefined || now <= horizon
  }

  /** Up to the last segment, and not to what is too young. */
  private reach(now: number, below: bigint): bigint {
    const lag = Number(this.world.setting('min.compaction.lag.ms'))
    const young = lag > 0 ? this.segments.all.find(({ newest }) => newest > now - lag)?.base : undefined
    const ends = [this.segments.all.at(-1)?.base ?? 0n, below, ...(young === undefined ? [] : [young])]
    return ends.reduce((min, one) => (one < min ? one : min))
  }

  private isWorthIt(records: readonly Kept[], to: bigint): boolean {
    let clean = 0
    let dirty = 0
    for (const { offset, batch } of records) {
      if (offset >= to) break
      // A share of its batch for each record.
      const bytes = batch.size / (batch.context.lastOffsetDelta + 1)
      if (offset < this.cleanBelow) clean += bytes
      else dirty += bytes
    }
    return dirty > 0 && dirty / (clean + dirty) >= Number(this.world.setting('min.cleanable.dirty.ratio'))
  }
}
