import { expect, test } from 'vitest'
import { Attempt } from '../../../src/consume/attempt'
import { Watchdog } from '../../../src/consume/watchdog'
import { createTestClock } from '../../helpers/test-clock'
import { entry, lane } from './given'

const make = (offset: number): Attempt => new Attempt(lane(), entry(offset), 1, 4)

test('an attempt that starts in the place of an abandoned one has its own time, though a grace of another ends later', async () => {
  const clock = createTestClock()
  const second = make(2)
  const third = make(3)
  const dog = new Watchdog(clock, 100, 1_000, () => dog.add(third, clock.monotonic()))
  dog.add(make(1), clock.monotonic())
  await clock.advance(100)
  // The first is given up at 1,100; the second, whose signal is aborted at the same look, has its grace until 2,100.
  await clock.advance(900)
  dog.add(second, clock.monotonic())
  await clock.advance(100)
  expect([second.timedOut, third.timedOut]).toEqual([true, false])
  await clock.advance(100)
  expect(third.timedOut).toBe(true)
  dog.close()
  expect(clock.timers).toBe(0)
})
