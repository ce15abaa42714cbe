import type { Clock } from '../ports'

/** How long handlers that never wait may run before everything else in the process gets its turn, ms. */
const LONG_MS = 10
/** The clock is read once in so many starts. */
const LOOK_EVERY = 64

export interface Turns<L> {
  /** The lane could start a record, but no handler place is free. */
  wait(lane: L): void
  /** The lane that has waited longest, which is taken off the list. */
  next(): L | undefined
  /** About the present time, monotonic, ms: at most LOOK_EVERY starts of one turn of the loop old. */
  now(): number
  /** Whether somebody waits for a handler place. */
  readonly crowded: boolean
  /** Counts one start; whether the event loop has been kept busy for too long. */
  isLong(): boolean
  /** Pumps the lane in a macrotask of its own. */
  later(lane: L): void
}

/** Who gets the next handler place, and when the event loop gets a turn. */
export function createTurns<L>(clock: Clock, pump: (lane: L) => void): Turns<L> {
  const waiting = new Set<L>()
  const postponed = new Set<L>()
  let starts = 0
  let since = -1
  let time = -1
  let long = false
  let armed = false

  function arm(): void {
    if (armed) return
    armed = true
    clock.soon(() => {
      armed = false
      since = time = -1
      starts = 0
      long = false
      const lanes = [...postponed]
      postponed.clear()
      for (const lane of lanes) pump(lane)
    })
  }

  return {
    now() {
      if (time < 0) {
        time = clock.monotonic()
        arm()
      }
      return time
    },
    get crowded() {
      return waiting.size > 0
    },
    wait(lane) {
      waiting.add(lane)
    },
    next() {
      for (const lane of waiting) {
        waiting.delete(lane)
        return lane
      }
      return undefined
    },
    isLong() {
      if (long || ++starts % LOOK_EVERY !== 0) return long
      time = clock.monotonic()
      if (since >= 0) return (long = time - since > LONG_MS)
      since = time
      // Notices the turn of the loop: from there the count begins anew.
      arm()
      return false
    },
    later(lane) {
      postponed.add(lane)
      arm()
    },
  }
}
