import type { Clock, Timer } from './clock'

/** The longest delay a Node timer takes; a longer one fires at once (Node's own documentation of setTimeout). */
const LONGEST_TIMER = 2 ** 31 - 1
/** How long a wait for a wall time may sleep before it looks at the wall clock again, should that have jumped. */
const LOOK_AGAIN = 10_000

// Captured at load, so that a test framework's fake timers never stop the engine half-way.
const { setTimeout, clearTimeout, setImmediate, clearImmediate, Date } = globalThis
// Fake timers replace `now` on the object itself.
const monotonic = globalThis.performance.now.bind(globalThis.performance)

function after(ms: number, fn: () => void): Timer {
  let left = Math.max(0, ms)
  let handle: ReturnType<typeof setTimeout>
  const arm = (): void => {
    const step = Math.min(left, LONGEST_TIMER)
    left -= step
    handle = setTimeout(left > 0 ? arm : fn, step)
  }
  arm()
  return { cancel: () => clearTimeout(handle) }
}

function at(time: number, fn: () => void): Timer {
  let handle: ReturnType<typeof setTimeout>
  const look = (): void => {
    const left = time - Date.now()
    // A Node timer may fire a millisecond before the clock says so: look at the clock, not at the timer.
    if (left <= 0) fn()
    else handle = setTimeout(look, Math.min(left, LOOK_AGAIN))
  }
  // Even a time that has passed is called back later, never inside this call.
  handle = setTimeout(look, Math.min(Math.max(0, time - Date.now()), LOOK_AGAIN))
  return { cancel: () => clearTimeout(handle) }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic,
  after,
  at,
  soon(fn) {
    const handle = setImmediate(fn)
    return { cancel: () => clearImmediate(handle) }
  },
}
