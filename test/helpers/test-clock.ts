import type { Clock, Timer } from '../../src/ports'

/** A clock moved by hand, for unit tests of one part. (Whole consumers are tested on the fake broker's clock.) */
export interface TestClock extends Clock {
  /** Fires what is due on the way, each at its time; promises run their course after each. */
  advance(ms: number): Promise<void>
  /** Fires what was asked for `soon`, until nothing more is, and lets promises run their course. */
  settle(): Promise<void>
  /** Moves the wall clock alone. */
  jump(ms: number): void
  /** Timers that wait, `soon` included. */
  readonly timers: number
  /** When the next timer is due, from now, ms; undefined where there is none. */
  readonly nextIn: number | undefined
}

interface Entry {
  readonly due: () => number
  readonly fn: () => void
}

export const WALL = Date.UTC(2026, 0, 1)

export function createTestClock(): TestClock {
  const timers = new Set<Entry>()
  const immediate = new Set<Entry>()
  let mono = 1_000
  let offset = WALL - mono

  function add(to: Set<Entry>, due: () => number, fn: () => void): Timer {
    const entry = { due, fn }
    to.add(entry)
    return { cancel: () => void to.delete(entry) }
  }

  function earliest(): Entry | undefined {
    let first: Entry | undefined
    for (const entry of timers) if (first === undefined || entry.due() < first.due()) first = entry
    return first
  }

  async function settle(): Promise<void> {
    await turn()
    for (;;) {
      const [next] = immediate
      if (next === undefined) return
      immediate.delete(next)
      next.fn()
      await turn()
    }
  }

  return {
    now: () => mono + offset,
    monotonic: () => mono,
    after(ms, fn) {
      const due = mono + Math.max(0, ms)
      return add(timers, () => due, fn)
    },
    at: (time, fn) => add(timers, () => time - offset, fn),
    soon: (fn) => add(immediate, () => 0, fn),
    settle,
    async advance(ms) {
      const target = mono + ms
      await settle()
      for (let next = earliest(); next !== undefined && next.due() <= target; next = earliest()) {
        timers.delete(next)
        mono = Math.max(mono, next.due())
        next.fn()
        await settle()
      }
      mono = target
    },
    jump(ms) {
      offset += ms
    },
    get timers() {
      return timers.size + immediate.size
    },
    get nextIn() {
      const next = earliest()
      return next && Math.max(0, next.due() - mono)
    },
  }
}

/** Lets every promise that can go on do so. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
