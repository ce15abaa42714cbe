import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Clock } from '../../../src/ports'

const LONGEST = 2 ** 31 - 1

// The clock takes its timers when it is loaded, so each test loads it anew, under timers that it moves by hand.
let clock: Clock

beforeEach(async () => {
  vi.useFakeTimers({ now: 1_000_000 })
  vi.resetModules()
  ;({ systemClock: clock } = await import('../../../src/ports/system-clock'))
})
afterEach(() => {
  vi.useRealTimers()
})

describe('P8: timers longer than 2^31-1 ms', () => {
  for (const ms of [LONGEST, LONGEST + 1, 2 * LONGEST + 7, 400 * 24 * 3_600_000]) {
    test(`after(${ms}) fires at its time and not before`, () => {
      const fired = vi.fn()
      clock.after(ms, fired)
      vi.advanceTimersByTime(ms - 1)
      expect(fired).not.toHaveBeenCalled()
      vi.advanceTimersByTime(1)
      expect(fired).toHaveBeenCalledTimes(1)
      expect(vi.getTimerCount()).toBe(0)
    })
  }

  test('no single timer is longer than Node takes: it would fire at once', async () => {
    const set = vi.spyOn(globalThis, 'setTimeout')
    vi.resetModules()
    const { systemClock } = await import('../../../src/ports/system-clock')
    const far = systemClock.at(1_000_000 + 3 * LONGEST, () => undefined)
    far.cancel()
    systemClock.after(3 * LONGEST, () => undefined)
    systemClock.after(Infinity, () => undefined)
    vi.advanceTimersByTime(2 * LONGEST)
    const waits = set.mock.calls.map(([, ms]) => ms as number)
    set.mockRestore()
    expect(waits).toHaveLength(1 + 3 + 3)
    expect(Math.max(...waits)).toBeLessThanOrEqual(LONGEST)
  })

  test('a cancelled one never fires, whichever part is under way', () => {
    const fired = vi.fn()
    const timer = clock.after(2 * LONGEST, fired)
    vi.advanceTimersByTime(LONGEST + 5)
    timer.cancel()
    vi.advanceTimersByTime(2 * LONGEST)
    expect(fired).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('P2: at()', () => {
  test('never early, also where the timer is', () => {
    const fired = vi.fn()
    clock.at(1_000_500, fired)
    // A Node timer may fire a millisecond before the wall clock says so.
    vi.setSystemTime(999_999)
    vi.advanceTimersByTime(500)
    expect(fired).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(fired).toHaveBeenCalledTimes(1)
  })

  test('a time that has passed is called back later, not inside the call', () => {
    const fired = vi.fn()
    clock.at(5, fired)
    expect(fired).not.toHaveBeenCalled()
    vi.advanceTimersByTime(0)
    expect(fired).toHaveBeenCalledTimes(1)
  })

  test('looks again within 10 s where the wall clock has jumped forwards', () => {
    const fired = vi.fn()
    clock.at(1_000_000 + 3_600_000, fired)
    vi.advanceTimersByTime(1)
    vi.setSystemTime(1_000_000 + 3_600_000)
    vi.advanceTimersByTime(10_000)
    expect(fired).toHaveBeenCalledTimes(1)
  })

  test('and waits on where it has jumped back', () => {
    const fired = vi.fn()
    clock.at(1_000_100, fired)
    vi.setSystemTime(900_000)
    vi.advanceTimersByTime(100_099)
    expect(fired).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(fired).toHaveBeenCalledTimes(1)
  })

  test('a cancelled one never fires', () => {
    const fired = vi.fn()
    const timer = clock.at(1_030_000, fired)
    vi.advanceTimersByTime(15_000)
    timer.cancel()
    vi.advanceTimersByTime(60_000)
    expect(fired).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })
})

test("takes its timers at load: a test framework's fake ones do not stop it later", async () => {
  vi.useRealTimers()
  vi.resetModules()
  const { systemClock } = await import('../../../src/ports/system-clock')
  vi.useFakeTimers({ now: 5 })
  expect(systemClock.now()).toBeGreaterThan(5)
  await new Promise<void>((resolve) => void systemClock.soon(resolve))
  await new Promise<void>((resolve) => void systemClock.after(0, resolve))
})
