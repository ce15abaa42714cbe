/** What a consumer group's engine is given (group.ts). */
import type { Settings } from '../config'
import type { Emitter } from '../observe'
import type { Clock, Driver, Random, TopicAdmin } from '../ports'
import type { Tier, Topology } from '../topology'
import type { Alone } from './alone'
import type { MakeTransactions } from './exactly-once'
import type { Entry, Lane } from './lane'
import type { LaneHost } from './outages'
import type { Processor } from './process-record'

export interface GroupOptions {
  readonly settings: Settings
  readonly topology: Topology
  readonly groupId: string
  readonly topics: readonly string[]
  /** Of these topics, as far as is known at the start. */
  readonly partitions: number
  /** The tier; undefined for the main topics. */
  readonly tier: Tier | undefined
  readonly driver: Driver
  readonly admin: TopicAdmin
  readonly clock: Clock
  readonly emitter: Emitter
  readonly random: Random
  readonly alone: Alone
  /** Undefined with `delivery: 'at-least-once'`. */
  readonly makeTransactions?: MakeTransactions | undefined
  makeProcessor(callbacks: {
    released(lane: Lane, entry: Entry): void
    settled(lane: Lane, entry: Entry): void
    again(lane: Lane, entry: Entry): void
    host: LaneHost
    nextInPlace(lane: Lane, entry: Entry): Entry | undefined
    now(): number
    laneChanged(lane: Lane): void
    stopping(): boolean
    together(lane: Lane, entries: readonly Entry[]): void
  }): Processor
  /** Whether nothing may start at all, whoever pauses what. */
  isHalted(): boolean
  /** Whether the user has paused this main topic (on the main topic and its tiers alike). */
  isPaused(topic: string): boolean
  /** While stopping: something has ended that the stop may wait for. */
  progress(): void
}
