/**
 * What a fault is to the suite. To add one: a file here that exports a `Fault`, its name in `index.ts`, and where a worker
 * has to do it to itself a command in `../commands.ts`.
 *
 * The frame draws a plan from the seed (which fault, when, how long, and a chance of its own for each), calls `begin`, waits
 * `lastsMs`, calls what `begin` gave back, and writes down the window from before `begin` to after the undoing. Two faults
 * with one `resource` never overlap; others do. A `begin` that finds nothing to do (no worker is up, say) throws `NothingToDo`, and one that was
 * done and whose effect nobody saw throws `NotSeen` when all of it is undone: neither is counted among the faults, and both are
 * told apart from them. The run fails where a kind never came about in all of it.
 *
 * What a window explains is said by `excuses`, and only by it:
 * - `copies`: an acknowledgement may have been lost, so a copy may stand twice, and commits may not have come through;
 * - `stall`: nobody may be able to work while it lasts, and for `recoveryMs` after it.
 * A record that was handled twice is explained by what the workers wrote down (a death, a lane taken away, a crash), never by
 * a window alone.
 */
import type { Admin, Kafka } from 'kafkajs'
import type { Broker } from '../../helpers/broker'
import type { Chance } from '../chance'
import type { Command } from '../commands'
import type { Crew } from '../crew'
import type { Line } from '../ledger'

export interface World {
  /** Supervised worker processes: whichever ends is started again. */
  readonly crew: Crew
  /** The cluster, its nodes and a proxy before each: workers know only the proxies. */
  readonly broker: Broker
  /** How many nodes the cluster has. */
  readonly nodes: 1 | 3
  /** A client past the proxies, and an admin of it that is connected: the suite's own eyes. */
  readonly kafka: Kafka
  readonly admin: Admin
  readonly topic: string
  /** Main topic, retry topics, dead letter topic. */
  readonly topics: readonly string[]
  /** Topics of the retry tiers. */
  readonly tiers: readonly string[]
  readonly dlq: string
  /** The group of each topic that is consumed: group id to topic. */
  readonly groups: ReadonlyMap<string, string>
  /** Produces records of a fault's own; resolves with their ids once they are acknowledged. */
  produce(wishes: readonly ProducedWish[]): Promise<void>
  /** What the workers have written so far. */
  lines(): readonly Line[]
  /** A topic is about to be deleted and made anew: what stands on it is read and kept for the checker. */
  beforeRemake(topic: string): Promise<void>
  /** It is there again, and empty: commits of the old one say nothing any more. */
  remade(topic: string): void
  /** For a person who reads the log of the run. */
  log(text: string): void
}

export interface ProducedWish {
  readonly key: string | Buffer | null
  readonly value: string | Buffer | null
  readonly headers?: Record<string, string | Buffer>
}

export type Undo = () => Promise<void>

export interface Fault {
  readonly name: string
  readonly about: string
  /** Faults of one resource come one at a time: two dead nodes of three are another experiment. */
  readonly resource: 'members' | 'workers' | 'node' | 'network' | 'topics'
  /** Left out where it makes no sense on the cluster at hand. Default: one node and three. */
  readonly nodes?: readonly (1 | 3)[]
  /** How long it lasts, from and to, ms; drawn for each time. */
  readonly lastsMs: readonly [number, number]
  readonly excuses: { readonly copies: boolean; readonly stall: boolean }
  /** How long after the undoing nobody may be at work yet, ms. Default 12,000: two sessions. */
  readonly recoveryMs?: number
  begin(world: World, chance: Chance): Promise<Undo>
}

export class NothingToDo extends Error {}

/** It was done, and is undone; what it does to a worker was not seen. */
export class NotSeen extends Error {}

export type { Command }
