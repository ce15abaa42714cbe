/**
 * A walk at random, by its seed: some settings of a consumer group, and steps that a program might take with it. What
 * they are is decided before any is taken, so that the same walk can be walked on two brokers.
 */
export interface Settings {
  readonly each: 'message' | 'batch'
  readonly autoCommit: boolean
  readonly autoCommitThreshold: number | null
  readonly eachBatchAutoResolve: boolean
  /** What an eachBatch resolves by itself: each record, or the last one at its end. */
  readonly resolves: 'each' | 'last'
  readonly concurrency: number
  readonly fromBeginning: boolean
  /** The second member is of the same client. */
  readonly sharedClient: boolean
}

export type Mishap = 'throw' | 'crash' | 'bug' | 'pause' | 'seek' | 'commit'
export type Member = 'first' | 'second'

export type Step =
  | { do: 'produce'; partition: number; count: number; apart: boolean }
  | { do: 'commit'; member: Member; partition: number; offset: number; metadata?: string }
  | { do: 'seek'; member: Member; partition: number; offset: number }
  | { do: 'pause' | 'resume'; member: Member; partitions?: number[] }
  | { do: 'join' | 'leave' | 'restart' | 'stale' }
  | { do: 'cut'; partition: number; offset: number }
  /** Happens in the handler, at the next record of the partition. */
  | { do: 'arm'; partition: number; mishap: Mishap; offset: number }
  /** Through the last payload that a handler was given of the partition. */
  | { do: 'late'; partition: number; what: 'resolve' | 'commit'; offset: number }
  | { do: 'offsets' | 'describe' }

export interface Walk {
  readonly settings: Settings
  readonly steps: readonly Step[]
}

export const PARTITIONS = 2

/** Numbers from 0 up to 1, the same for the same seed: mulberry32. */
function random(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

export function walkOf(seed: number, length = 18): Walk {
  const next = random(seed)
  const below = (count: number): number => Math.floor(next() * count)
  const one = <T>(...of: T[]): T => of[below(of.length)] as T
  const settings: Settings = {
    each: one('message', 'batch'),
    autoCommit: one(true, false),
    autoCommitThreshold: one(null, null, 2),
    eachBatchAutoResolve: one(true, false),
    resolves: one('each', 'last'),
    concurrency: one(1, 1, 2),
    fromBeginning: one(true, true, false),
    sharedClient: one(true, false),
  }
  const ends = Array.from({ length: PARTITIONS }, () => 0)
  const member = (): Member => one('first', 'first', 'second')
  const partition = (): number => below(PARTITIONS)
  const offsetOf = (at: number): number => below((ends[at] ?? 0) + 2)

  const make: Record<Step['do'], () => Step> = {
    produce() {
      const [at, count] = [partition(), 1 + below(4)]
      ends[at] = (ends[at] ?? 0) + count
      return { do: 'produce', partition: at, count, apart: one(true, false) }
    },
    commit() {
      const at = partition()
      return { do: 'commit', member: member(), partition: at, offset: offsetOf(at), ...one({}, { metadata: 'note' }) }
    },
    seek() {
      const at = partition()
      return { do: 'seek', member: member(), partition: at, offset: one(offsetOf(at), offsetOf(at), -1, -2) }
    },
    pause: () => ({ do: 'pause', member: member(), ...one({}, { partitions: [partition()] }) }),
    resume: () => ({ do: 'resume', member: member(), ...one({}, { partitions: [partition()] }) }),
    join: () => ({ do: 'join' }),
    leave: () => ({ do: 'leave' }),
    restart: () => ({ do: 'restart' }),
    stale: () => ({ do: 'stale' }),
    cut() {
      const at = partition()
      return { do: 'cut', partition: at, offset: offsetOf(at) }
    },
    arm() {
      const at = partition()
      const mishap = one<Mishap>('throw', 'throw', 'crash', 'bug', 'pause', 'pause', 'seek', 'commit')
      return { do: 'arm', partition: at, mishap, offset: offsetOf(at) }
    },
    late() {
      const at = partition()
      return { do: 'late', partition: at, what: one('resolve', 'commit'), offset: offsetOf(at) }
    },
    offsets: () => ({ do: 'offsets' }),
    describe: () => ({ do: 'describe' }),
  }
  const often: Step['do'][] = ['produce', 'produce', 'produce', 'produce', 'arm', 'arm', 'seek', 'commit', 'resume']
  const kinds: Step['do'][] = [...often, ...(Object.keys(make) as Step['do'][])]
  const steps = Array.from({ length }, (_, i) => make[i === 0 ? 'produce' : one(...kinds)]())
  return { settings, steps }
}
