/**
 * Time, as an argument. Nothing outside this folder may read a clock or set a timer (lint holds it), so that a test
 * can move time by hand and so that a wall clock that jumps is dealt with in one place.
 */

export interface Timer {
  /** Stops the timer; a no-op once it has fired or been cancelled. */
  cancel(): void
}

export interface Clock {
  /** Wall time in ms since the epoch. It may jump; only due times and header stamps use it. */
  now(): number
  /** Monotonic time in ms, for durations and deadlines. */
  monotonic(): number
  /**
   * Calls `fn` once, `ms` from now (monotonic; longer than 2^31-1 ms is fine).
   * `deadline` marks a timer that guards running work (a handler's time-out, a publish's time-out, a shutdown's): on a
   * manual clock such a timer may fire while the work that it guards is still running; a plain `wait` may not.
   */
  after(ms: number, fn: () => void, purpose?: 'wait' | 'deadline'): Timer
  /** Calls `fn` once, as soon as `now() >= time` (looks again where the wall clock has jumped). Never early. */
  at(time: number, fn: () => void): Timer
  /** Calls `fn` in a macrotask of its own, soon. */
  soon(fn: () => void): Timer
  /**
   * Manual clocks only: counts a piece of work as busy until `done()`, so that moving time can wait for it. `label`
   * names it in the report of what is stuck. Absent on the system clock, so that it costs nothing.
   */
  track?(label: () => string): Work
  /**
   * Manual clocks only: what is counted as busy and waits for `promise` is at rest until it settles, so that time can move
   * to what ends the wait. Absent on the system clock.
   */
  park?<T>(promise: PromiseLike<T>): Promise<T>
}

export interface Work {
  /** Runs `fn` as the body of this work, so that what it waits for (the manual clock, a held request) is known as its own. */
  run<T>(fn: () => T): T
  done(): void
}

/** Where a fake broker keeps its clock: `kafka[CLOCK]`. A registered symbol, so that ESM and CJS builds agree. */
export const CLOCK: unique symbol = Symbol.for('retryline.clock') as never

export function clockOf(kafka: unknown): Clock | undefined {
  return (kafka as { [CLOCK]?: Clock } | null | undefined)?.[CLOCK]
}

/** Where a client of a fake broker keeps what stands for its process: `kafka[PROCESS]`. */
export const PROCESS: unique symbol = Symbol.for('retryline.process') as never

export function processOf(kafka: unknown): object | undefined {
  return (kafka as { [PROCESS]?: object } | null | undefined)?.[PROCESS]
}
