/**
 * Where a promise is tried: the fake broker or a real one, behind the same words, so that one suite runs on both.
 * Nothing here sleeps: on the real stage `until` looks again and again, on the fake it moves the clock.
 */
import type { KafkaClient } from '../../src/config'
import type { StoredRecord, WireRecord } from './wire'

export type { Bytes, StoredRecord, WireRecord } from './wire'

export interface Gate {
  /** For handlers: waits until the gate is open. */
  wait(): Promise<void>
  open(): void
  readonly isOpen: boolean
}

/** A client whose network can be taken away: no broker can be reached until it is given back. */
export interface Breakable {
  readonly client: KafkaClient
  down(): void
  up(): void
}

export interface Stage {
  readonly kind: 'fake' | 'real'
  /** The time that due times are compared with, ms since the epoch. */
  now(): number
  /** A client of its own, as another process has it. */
  client(): KafkaClient
  breakable(): Breakable
  /** A name that no other test uses. */
  unique(name: string): string
  createTopics(topics: Readonly<Record<string, number>>, config?: Readonly<Record<string, string>>): Promise<void>
  addPartitions(topic: string, total: number): Promise<void>
  /** Deletes the topic with all that stands on it, and makes it anew. */
  remakeTopic(topic: string, partitions: number): Promise<void>
  /** Cuts the log: records below the offset are gone. */
  deleteRecords(topic: string, partition: number, below: bigint): Promise<void>
  /** As any producer could write it. The offset of the first. */
  produce(topic: string, partition: number, records: readonly WireRecord[]): Promise<bigint>
  /** All that stands on a topic, by partition and offset. */
  records(topic: string): Promise<StoredRecord[]>
  /** What the group has committed; -1 where nothing. */
  committed(group: string, topic: string): Promise<Map<number, bigint>>
  /** Notes what the group has committed from now on, as the broker tells it, by partition. */
  watch(group: string, topic: string): { stop(): Promise<Map<number, bigint[]>> }
  /** First and next offset of each partition. */
  ends(topic: string): Promise<Map<number, { low: bigint; high: bigint }>>
  /** Member ids of the group. */
  members(group: string): Promise<string[]>
  /** Waits until the condition holds; says what it waited for where it never does. */
  until(condition: () => boolean | Promise<boolean>, what: string | (() => string)): Promise<void>
  /** Something of the engine's that is under way by itself: on the fake time moves until it ends. */
  during<T>(work: Promise<T>): Promise<T>
  gate(): Gate
  /** For handlers that take their time. */
  takes(ms: number): Promise<void>
  close(): Promise<void>
}

/** Deferred, in words of doors: handlers wait, the test opens. */
export function gateWith(park: <T>(promise: Promise<T>) => Promise<T>): Gate {
  let open!: () => void
  let isOpen = false
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return {
    wait: () => park(opened),
    open() {
      isOpen = true
      open()
    },
    get isOpen() {
      return isOpen
    },
  }
}
