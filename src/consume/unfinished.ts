/**
 * What still runs of lanes that were closed, by partition: over rebalances, crashes and restarts of the client. A record
 * that comes again while its first call runs in this process joins that call.
 */
import type { TopicPartition } from '../ports'
import type { Attempt } from './attempt'
import { laneKey, type Entry, type Lane, type Unfinished } from './lane'

export class UnfinishedTable {
  readonly #byPartition = new Map<string, Unfinished>()

  /** Undefined where there is none, as is usual. */
  of(where: TopicPartition): Unfinished | undefined {
    return this.#byPartition.get(laneKey(where))
  }

  /** The lane is being closed: of these attempts, its own outlive it. */
  keep(lane: Lane, running: readonly Attempt[]): void {
    for (const attempt of running) {
      if (attempt.lane !== lane) continue
      const unfinished = this.of(lane) ?? (new Map() as Unfinished)
      this.#byPartition.set(laneKey(lane), unfinished.set(attempt.entry.offset, attempt))
    }
  }

  /** The topic was made anew: other records stand at these offsets now, which must not join these calls. */
  drop(where: TopicPartition): void {
    this.#byPartition.delete(laneKey(where))
  }

  /** An attempt of a closed lane has ended: its record can be joined no longer. */
  forget(lane: Lane, entry: Entry): void {
    const unfinished = this.of(lane)
    // One that waited to join ends with its lane too, and is not the call.
    if ((unfinished?.get(entry.offset) as Attempt | undefined)?.entry !== entry) return
    unfinished!.delete(entry.offset)
    if (unfinished!.size > 0) return
    this.#byPartition.delete(laneKey(lane))
  }
}
