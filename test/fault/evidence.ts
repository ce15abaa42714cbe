/** What the checker is given, and the words in which its parts speak of it. */
import type { Begin, End, Happening, Line, Place } from './ledger'
import type { Hop } from './reader'

/** A record of the main topic, as it stands there. */
export interface MainRecord {
  readonly place: Place
  readonly key: string | null
  /** The producer's id, where the record is of the load's making. */
  readonly id?: string
  /** Whether its wish is never granted: it must come to the dead letter topic, and no other may. */
  readonly dies?: boolean
  /** Whether its handler sends a record of its own when it succeeds. */
  readonly sends?: boolean
}

/** A committed offset as an admin client saw it, with what its metadata says is done beyond it. */
export interface SeenCommit {
  /** When the answer was there: the commit is older. */
  readonly at: number
  readonly offset: bigint
  readonly done: readonly { readonly from: bigint; readonly to: bigint }[]
}

export interface FaultWindow {
  readonly fault: string
  readonly from: number
  readonly to: number
  readonly excuses: { readonly copies: boolean; readonly stall: boolean }
  readonly recoveryMs: number
}

export interface Evidence {
  readonly lines: readonly Line[]
  /** Where every record of the main topic stands. */
  readonly produced: readonly Place[]
  /** The first place of every record on the dead letter topic, once for each copy there. */
  readonly deadLetters: readonly Place[]
  /** When workers were killed, by name. */
  readonly kills: ReadonlyMap<string, number>
  /** When the broker could not be reached: an acknowledgement may have been lost, and then a copy stands twice. */
  readonly outages?: readonly { readonly from: number; readonly to: number }[]
  /** How long a record that is done may wait for its commit while the broker can be reached, ms. */
  readonly uncommittedMs?: number
  /** What the records of the main topic ask for. */
  readonly main?: readonly MainRecord[]
  /** Every copy on the retry topics and the dead letter topic, as a `read_committed` reader sees them. */
  readonly hops?: readonly Hop[]
  /** The place of the sender, for each record that a handler sent. */
  readonly sent?: readonly Place[]
  /** Ids that the producer knows to be on the topic, with the time of their acknowledgement. */
  readonly acknowledged?: ReadonlyMap<string, number>
  readonly windows?: readonly FaultWindow[]
  /** Commits that were seen to be lower than one before, in words. */
  readonly falls?: readonly string[]
  /** By `topic/partition`, in order of time. */
  readonly commits?: ReadonlyMap<string, readonly SeenCommit[]>
  readonly ordering?: 'partition' | 'key' | 'unordered'
  readonly delivery?: 'at-least-once' | 'exactly-once'
}

export interface Call {
  readonly begin: Begin
  readonly end: End | undefined
  /** When the copy of a failed one was acknowledged. */
  readonly routedAt: number | undefined
}

/** A worker calls for one copy at a time, so an end belongs to its last begin. */
export function callsOf(lines: readonly Line[]): Call[] {
  const calls: { -readonly [K in keyof Call]: Call[K] }[] = []
  const open = new Map<string, (typeof calls)[number]>()
  for (const line of lines) {
    if (line.what !== 'begin' && line.what !== 'end' && line.what !== 'routed') continue
    const key = `${line.pid} ${line.source}`
    if (line.what === 'begin') {
      const call = { begin: line, end: undefined, routedAt: undefined }
      calls.push(call)
      open.set(key, call)
    } else {
      const call = open.get(key)
      if (call && line.what === 'end') call.end = line
      else if (call) call.routedAt = line.at
    }
  }
  return calls
}

export function isHappening(line: Line): line is Happening {
  return !/^(begin|end|routed|note)$/.test(line.what)
}

export function nameOf({ place, attempt }: { place: Place; attempt: number }): string {
  return `${place} attempt ${attempt}`
}

export function tierOf(source: Place): string {
  return /\.retry\.([^./]+)\/\d+@\d+$/.exec(source)?.[1] ?? 'main'
}

export function laneOf(place: Place): string {
  return place.slice(0, place.lastIndexOf('@'))
}

export function offsetOf(place: Place): bigint {
  return BigInt(place.slice(place.lastIndexOf('@') + 1))
}

export function groupBy<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return groups
}
