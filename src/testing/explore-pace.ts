/**
 * How long the requests of one run are under way: the interleavings that `explore` tries.
 *
 * Life of a trip:  sent -> behind what its connection still waits for -> under way -> at the broker -> on its way back
 *   - a connection is one queue, as at a broker, which takes the next request when it has answered the one before; as
 *     kafkajs does, fetches have a connection of their own.
 *   - the length of a way depends on the seed, the connection and how many requests it has had, and on nothing else: a
 *     fault more or less elsewhere does not change it.
 *
 * Must never happen: an answer that overtakes another on its connection; a wait that the clock does not know of.
 */
import type { Pace, Request, Trip } from './broker'
import type { InnerClock } from './clock'
import { mix, toUnit } from './explore-random'
import type { Trace } from './explore-trace'
import type { FakeWork } from './work'

/** How requests travel in one run. `even` is how they do without `explore`. */
const TEMPERS = ['even', 'lively', 'lively', 'lively', 'slow'] as const
type Temper = (typeof TEMPERS)[number]

interface Line {
  readonly id: number
  count: number
  /** What the next request waits for: the broker is done with the one before; its answer has arrived. */
  done: Promise<void>
  arrived: Promise<void>
}

export interface PaceOptions {
  readonly seed: number
  readonly clock: InnerClock
  readonly trace: Trace
}

export interface ExplorePace {
  readonly pace: Pace
  /** From now on nothing arrives any more: what is left of a run stands still. */
  stop(): void
}

const NEVER = new Promise<never>(() => undefined)

export function createPace({ seed, clock, trace }: PaceOptions): ExplorePace {
  const temper: Temper = TEMPERS[mix(seed, 1) % TEMPERS.length] ?? 'lively'
  const lines = new WeakMap<object, Map<string, Line>>()
  let made = 0
  let stopped = false

  function lineOf({ connection, kind, node = 0 }: Request): Line {
    const key = `${node}/${kind === 'fetch' ? 'fetch' : 'other'}`
    const ofClient = lines.get(connection ?? clock) ?? new Map<string, Line>()
    lines.set(connection ?? clock, ofClient)
    const line = ofClient.get(key) ?? { id: ++made, count: 0, done: Promise.resolve(), arrived: Promise.resolve() }
    ofClient.set(key, line)
    return line
  }

  async function away(work: FakeWork, chance: number, least: number): Promise<void> {
    const { turns, ms } = lengthOf(temper, chance, least)
    for (let left = turns; left > 0; left--) await clock.turn()
    if (ms > 0) await parked(work, new Promise<void>((resolve) => void clock.after(ms, resolve)))
    if (stopped) await NEVER
  }

  return {
    stop: () => void (stopped = true),
    pace(request, work): Trip {
      const line = lineOf(request)
      const nth = ++line.count
      const chance = (way: number): number => toUnit(mix(seed, line.id, nth, way))
      const before = { done: line.done, arrived: line.arrived }
      let leave = (): void => undefined
      let arrive = (): void => undefined
      line.done = new Promise((resolve) => (leave = resolve))
      line.arrived = new Promise((resolve) => (arrive = resolve))
      trace.add({ what: 'sent', request })
      return {
        async there() {
          await parked(work, before.done)
          await away(work, chance(1), 1)
        },
        done(error) {
          trace.add({ what: 'done', request, error })
          leave()
        },
        async back() {
          await away(work, chance(2), 0)
          await parked(work, before.arrived)
          arrive()
        },
        cut() {
          leave()
          arrive()
        },
        end: (error) => trace.add({ what: 'answered', request, error }),
      }
    },
  }
}

async function parked(work: FakeWork, wait: Promise<void>): Promise<void> {
  const unpark = work.park()
  await wait
  unpark()
}

/** Macrotasks and virtual ms of one way. */
function lengthOf(temper: Temper, chance: number, least: number): { turns: number; ms: number } {
  // The fraction that is left of a chance is a chance again.
  const within = (from: number, to: number): number => ((chance - from) / (to - from)) % 1
  const [quick, turning, brief] = temper === 'slow' ? [0.15, 0.3, 0.95] : [0.5, 0.8, 0.98]
  if (temper === 'even' || chance < quick) return { turns: least, ms: 0 }
  if (chance < turning) return { turns: least + 1 + Math.floor(within(quick, turning) * 5), ms: 0 }
  if (chance < brief) return { turns: least, ms: 1 + Math.floor(within(turning, brief) * 15) }
  return { turns: least, ms: 15 + Math.floor(within(brief, 1) * 300) }
}
