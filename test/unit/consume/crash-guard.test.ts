import { expect, test } from 'vitest'
import { Alone } from '../../../src/consume/alone'
import { CrashGuard } from '../../../src/consume/crash-guard'
import { createTestClock } from '../../helpers/test-clock'
import { lane, recorder } from './given'

test('crash-loop: a death counts against the suspect that was marked as running, and against none that waited', () => {
  const clock = createTestClock()
  const { emitter } = recorder(clock)
  const none = (): void => undefined
  const guard = new CrashGuard({
    crashLimit: 3,
    atLeast: 4,
    commitIntervalMs: 200,
    clock,
    emitter,
    alone: new Alone(),
    random: () => 0,
    mayRun: () => true,
    run: none,
    postpone: none,
    crashLoop: () => true,
    hurry: none,
  })
  const suspects = [
    { offset: 3n, deaths: 1, running: false },
    { offset: 5n, deaths: 1, running: true },
  ]
  const told = (by: string | undefined) => {
    const one = lane()
    guard.watch(one)
    guard.opened(one, { open: by === undefined ? undefined : { records: 9, by }, careful: 2, suspects })
    return [one.caution?.until, [...(one.caution?.suspects ?? [])]]
  }
  const asTheyWere = [3n, 5n].map((offset) => [offset, 1])
  expect(told('dead')).toEqual([
    9,
    [
      [3n, 1],
      [5n, 2],
    ],
  ])
  // A clean end; and a mark of our own.
  expect(told(undefined)).toEqual([2, asTheyWere])
  expect(told('AAAA')).toEqual([2, asTheyWere])
})
