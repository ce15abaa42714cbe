/**
 * The real time that the fake needs: macrotasks, the wait for a stall, and how long something took.
 *
 * Captured at load, and from `node:timers` instead of the globals: jest's and vitest's fake timers replace only the
 * latter, so that these are real even where fake timers were on before (`fakeTimers: { enableGlobally: true }`, a setup
 * file). The mock timers of node:test replace both: where they were on at load, that is said, since nothing would move.
 */
import timers from 'node:timers'
import { RetrylineError } from '../../errors'
import type { Timer } from '../../ports'

const { setTimeout, clearTimeout, setImmediate, clearImmediate } = timers

/** Mocks are bound functions, or carry the clock that they belong to. */
const areReal = [setTimeout, setImmediate].every(
  (fn) => ['setTimeout', 'setImmediate'].includes(fn.name) && !Object.hasOwn(fn, 'clock'),
)

/** Throws RETRYLINE_TESTING where the timers were not real when this module was loaded. */
export function checkRealTime(): void {
  if (areReal) return
  throw new RetrylineError(
    'RETRYLINE_TESTING',
    'fake timers were on when retryline/testing was loaded, so nothing would ever move: import it before ' +
      'mock.timers.enable() is called',
  )
}

export const realTime = {
  /** ms, of a clock that nobody fakes. */
  now: (): number => process.uptime() * 1000,

  after(ms: number, fn: () => void): Timer {
    const handle = setTimeout(fn, ms)
    return { cancel: () => clearTimeout(handle) }
  },

  /** In a macrotask of its own. */
  soon(fn: () => void): Timer {
    const handle = setImmediate(fn)
    return { cancel: () => clearImmediate(handle) }
  },
}
