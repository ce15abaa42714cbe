/**
 * Partitions whose next batch cannot be decoded: paused at kafkajs, and looked at again from time to time.
 *
 * One is:  readable -> found -> withheld -> looked at -> found again (withheld for twice as long), or readable
 *   - withheld: paused at kafkajs, whatever the group above wishes; the wish is kept and follows when it is over.
 *   - looked at: fetched as the group wishes. Found again at the same offset counts on; a batch of it ends the story.
 *   - sought elsewhere by the group: another batch is next, so the story is over.
 *   - an assignment without it, a crash, another client: forgotten; whoever fetches it next finds the same.
 *
 * Must never happen: a partition that stays paused though its story is over; a timer after a stop.
 */
import type { Clock, Timer, TopicPartition } from '../../ports'
import type { ConsumerLike } from './kafkajs-like'

/** How long one is withheld: the first time, and at most. ms. */
const LOOK_AFTER = { firstMs: 1_000, maxMs: 300_000 }

interface Mark {
  readonly where: TopicPartition
  readonly offset: bigint
  readonly looks: number
  /** While it is withheld. */
  timer: Timer | undefined
}

export interface Unreadable {
  found(where: TopicPartition, offset: bigint, error: unknown): void
  /** What the group wishes. */
  pause(where: TopicPartition): void
  resume(where: TopicPartition): void
  seek(where: TopicPartition, offset: bigint): void
  /** Records up to, not including, `next` were read. */
  read(where: TopicPartition, next: bigint): void
  /** Keeps these only. */
  keep(assigned: readonly TopicPartition[]): void
  forget(): void
}

/** `tell`: one was found, and is looked at again in so many ms. */
export function createUnreadable(
  clock: Clock,
  consumer: () => ConsumerLike,
  tell: (where: TopicPartition, offset: bigint, error: unknown, againInMs: number) => void,
): Unreadable {
  const marks = new Map<string, Mark>()
  /** What the group wishes to be paused. */
  const wishes = new Set<string>()

  const pause = ({ topic, partition }: TopicPartition): void =>
    ifRunning(() => consumer().pause([{ topic, partitions: [partition] }]))
  const resume = ({ topic, partition }: TopicPartition): void =>
    ifRunning(() => consumer().resume([{ topic, partitions: [partition] }]))

  function end(key: string, mark: Mark): void {
    marks.delete(key)
    if (mark.timer === undefined) return
    mark.timer.cancel()
    if (!wishes.has(key)) resume(mark.where)
  }

  function drop(key: string, mark: Mark): void {
    marks.delete(key)
    mark.timer?.cancel()
  }

  return {
    found(where, offset, error) {
      const key = keyOf(where)
      const before = marks.get(key)
      pause(where)
      // A fetch that was under way when it was found.
      if (before?.timer !== undefined && before.offset === offset) return
      before?.timer?.cancel()
      const looks = before?.offset === offset ? before.looks + 1 : 0
      const wait = Math.min(LOOK_AFTER.firstMs * 2 ** looks, LOOK_AFTER.maxMs)
      const mark: Mark = { where, offset, looks, timer: undefined }
      mark.timer = clock.after(wait, () => {
        mark.timer = undefined
        if (!wishes.has(key)) resume(where)
      })
      marks.set(key, mark)
      tell(where, offset, error, wait)
    },
    pause(where) {
      wishes.add(keyOf(where))
      pause(where)
    },
    resume(where) {
      const key = keyOf(where)
      wishes.delete(key)
      if (marks.get(key)?.timer === undefined) resume(where)
    },
    seek(where, offset) {
      const key = keyOf(where)
      const mark = marks.get(key)
      if (mark && mark.offset !== offset) end(key, mark)
      const { topic, partition } = where
      ifRunning(() => consumer().seek({ topic, partition, offset: offset.toString() }))
    },
    read(where, next) {
      const key = keyOf(where)
      const mark = marks.get(key)
      if (mark && next > mark.offset) end(key, mark)
    },
    keep(assigned) {
      const mine = new Set(assigned.map(keyOf))
      // The pause at kafkajs outlives the assignment; the group sets it anew when the partition comes back.
      for (const [key, mark] of marks) if (!mine.has(key)) drop(key, mark)
    },
    forget() {
      for (const [key, mark] of marks) drop(key, mark)
    },
  }
}

/** kafkajs throws where its consumer does not run (after a stop, between crash and restart); then there is nothing to do. */
function ifRunning(fn: () => void): void {
  try {
    fn()
  } catch {
    // Every GROUP_JOIN sets position and pause of every partition anew.
  }
}

const keyOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`
