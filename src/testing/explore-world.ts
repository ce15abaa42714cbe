/**
 * One run of a scenario: a cluster of its own, time that moves as the seed says, and chance that comes from the seed.
 *
 * A member:  starting -> running -> stopping -> stopped
 *                     -> failed (its start was refused)
 *            any of these -> dead (killed: nothing of it reaches the cluster any more, and its handlers never end)
 */
import type { FakeBroker } from './broker'
import type { InnerClock } from './clock'
import type { FakeClient, FakeKafka } from './create-fake-kafka'
import { toMs, type Duration } from './duration'
import type { ExploreFaults } from './explore-faults'
import type { Trace } from './explore-trace'
import type { CommitRecord } from './group-offsets'
import type { Random } from '../ports'

/** What a member runs: a resilient consumer, or anything that starts and stops. */
export interface ExploredConsumer {
  start(): Promise<unknown>
  stop(): Promise<unknown>
  /** As a resilient consumer's: its events are then part of the trace. */
  on?(type: never, listener: never): unknown
}

export interface ExploreMember<C extends ExploredConsumer = ExploredConsumer> {
  /** `m1`, `m2` and so on: the client id too. */
  readonly name: string
  readonly client: FakeClient
  readonly consumer: C
  readonly state: 'starting' | 'running' | 'failed' | 'stopping' | 'stopped' | 'dead'
  /** Resolves when its start is over, well or not. */
  readonly started: Promise<void>
  /** Leaves in good order. Once. Resolves when that is done (never, where it dies meanwhile). */
  stop(): Promise<void>
  /** The process dies: its connections break, nothing of it arrives any more, and its sessions run out. */
  kill(): void
  /** For its handlers: ends at once while it lives, and never once it is dead. */
  breathe(): Promise<void>
}

export interface SeenCommit extends CommitRecord {
  readonly group: string
}

export interface World extends ExploreFaults {
  readonly seed: number
  readonly kafka: FakeKafka
  readonly members: readonly ExploreMember[]
  /** In [0, 1), by seed. All chance of a scenario must come from here. */
  random(): number
  /** A whole number, both ends included. */
  int(least: number, most: number): number
  pick<T>(list: readonly T[]): T
  chance(of: number): boolean
  /** Virtual ms since the run began. */
  now(): number
  /** Starts a member, on a client of its own, and does not wait for it. */
  join<C extends ExploredConsumer>(make: (client: FakeClient, name: string) => C): ExploreMember<C>
  /** Lets a little happen, as the seed says: some turns of the loop, or up to `most` virtual ms (50 by default). */
  step(most?: number): Promise<void>
  /** Moves time so far, in one go. */
  advance(duration: Duration): Promise<void>
  /** Moves time until the condition holds; says what it waited for where it never does within `limit` (15m by default). */
  until(condition: () => boolean, what: string, limit?: Duration): Promise<void>
  /** Moves time until the work has ended, and gives its result. */
  run<T>(work: Promise<T>, what?: string, limit?: Duration): Promise<T>
  /** For handlers: takes a while, as the seed says: nothing, some turns of the loop, or up to `most` virtual ms (50). */
  work(most?: number): Promise<void>
  /** Called for each commit as the broker takes it. */
  onCommit(listener: (commit: SeenCommit) => void): void
  /** A line of the trace. */
  note(text: string): void
  /** Something that was promised does not hold: the run ends here, and `explore` tells of it. Never throws. */
  broken(promise: string, text: string): void
}

export interface WorldTools {
  readonly seed: number
  readonly kafka: FakeKafka
  readonly broker: FakeBroker
  readonly clock: InnerClock
  readonly random: Random
  readonly trace: Trace
  readonly faults: ExploreFaults
}

export interface Broken {
  readonly promise: string | undefined
  readonly text: string
  readonly cause?: unknown
  /** It has used up its real time: to look for a run with fewer faults would take as long for each. */
  readonly endless?: boolean
}

/** What ends a run early, out of whatever the scenario waits for. */
export class RunIsOver extends Error {}

const LIMIT = '15m'

export function createWorld(tools: WorldTools): { world: World; broken: Promise<Broken> } {
  const { seed, kafka, broker, clock, random, trace, faults } = tools
  const members: ExploreMember[] = []
  const listeners: ((commit: SeenCommit) => void)[] = []
  let end = (_: Broken): void => undefined
  let over = false
  const broken = new Promise<Broken>((resolve) => (end = resolve))
  const startedAt = clock.monotonic()
  const int = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1))

  function stopIfOver(): void {
    if (over) throw new RunIsOver()
  }

  async function turns(count: number): Promise<void> {
    for (let left = count; left > 0; left--) await clock.turn()
  }

  async function until(condition: () => boolean, what: string, limit: Duration = LIMIT): Promise<void> {
    const latest = clock.monotonic() + toMs(limit)
    let most = 30
    while (!condition()) {
      if (clock.monotonic() >= latest) {
        world.broken('progress', `never happened within ${limit}: ${what}`)
        throw new RunIsOver()
      }
      await world.step(most)
      // What does not come soon comes late: the steps grow.
      most = Math.min(most * 1.2, 5000)
    }
    stopIfOver()
  }

  const world: World = {
    ...faults,
    seed,
    kafka,
    members,
    random,
    int,
    pick: (list) => list[int(0, list.length - 1)] as never,
    chance: (of) => random() < of,
    now: () => clock.monotonic() - startedAt,
    join: (make) => {
      const member = createMember(tools, `m${members.length + 1}`, make)
      members.push(member)
      return member
    },
    async step(most = 50) {
      stopIfOver()
      if (random() < 0.25) await turns(int(1, 12))
      else await clock.advance(int(0, Math.ceil(most)))
      stopIfOver()
    },
    async advance(duration) {
      stopIfOver()
      await clock.advance(duration)
      stopIfOver()
    },
    until,
    async run(work, what = 'the end of what the scenario waits for', limit) {
      let ended = false
      const settled = work.then(
        () => (ended = true),
        () => (ended = true),
      )
      await until(() => ended, what, limit)
      await settled
      return work
    },
    async work(most = 50) {
      const kind = random()
      if (kind < 0.4) return
      if (kind < 0.7) await turns(int(1, 4))
      else await clock.sleep(int(1, Math.max(1, most)))
    },
    onCommit: (listener) => void listeners.push(listener),
    note: (text) => trace.add({ what: 'note', text }),
    broken(promise, text) {
      if (over) return
      over = true
      trace.add({ what: 'broken', text: `${promise} is broken: ${text}` })
      end({ promise, text })
    },
  }

  broker.coordinator.onCommit = (group, commit) => {
    trace.add({ what: 'commit', group, commit })
    for (const listener of listeners) listener({ ...commit, group })
  }

  return { world, broken }
}

function createMember<C extends ExploredConsumer>(
  { kafka, clock, trace }: WorldTools,
  name: string,
  make: (client: FakeClient, name: string) => C,
): ExploreMember<C> {
  const client = kafka.client({ clientId: name })
  const consumer = make(client, name)
  let state: ExploreMember['state'] = 'starting'
  let stopping: Promise<void> | undefined
  let die = (): void => undefined
  const dead = new Promise<never>(() => undefined)
  const died = new Promise<void>((resolve) => (die = resolve))
  const listen = (event: object & { type: string }): void => trace.add({ what: 'event', who: name, event })
  consumer.on?.('all' as never, listen as never)
  trace.add({ what: 'note', text: `${name} starts` })
  const start = async (): Promise<void> => {
    try {
      await consumer.start()
      if (state === 'starting') state = 'running'
    } catch (e) {
      if (state === 'starting') state = 'failed'
      trace.add({ what: 'note', text: `${name} did not start: ${(e as Error).message.split('\n')[0] ?? ''}` })
    }
  }
  return {
    name,
    client,
    consumer,
    get state() {
      return state
    },
    started: Promise.race([clock.detached(start), died]),
    stop() {
      stopping ??= (async () => {
        trace.add({ what: 'note', text: `${name} stops` })
        if (state !== 'dead') state = 'stopping'
        await Promise.race([consumer.stop(), died])
        if (state === 'stopping') state = 'stopped'
        trace.add({ what: 'note', text: `${name} has stopped` })
      })()
      return stopping
    },
    kill() {
      if (state === 'dead') return
      trace.add({ what: 'fault', text: `${name} is killed` })
      state = 'dead'
      kafka.broker.cutOff(client)
      die()
    },
    breathe: () => (state === 'dead' ? clock.park(dead) : Promise.resolve()),
  }
}
