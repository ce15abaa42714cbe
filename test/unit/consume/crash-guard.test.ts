import { expect, test } from 'vitest'
import { Alone } from '../../../src/consume/alone'
import { CrashGuard, type CrashGuardOptions } from '../../../src/consume/crash-guard'
import type { CrashMarks } from '../../../src/consume/crash-marks'
import { createTestClock } from '../../helpers/test-clock'
import { entry, lane, recorder } from './given'

function setUp(over: Partial<CrashGuardOptions> = {}) {
  const clock = createTestClock()
  const { emitter } = recorder(clock)
  const calls: string[] = []
  const guard = new CrashGuard({
    crashLimit: 3,
    atLeast: 4,
    commitIntervalMs: 200,
    clock,
    emitter,
    alone: new Alone(),
    who: 'self',
    alive: () => Promise.resolve(undefined),
    mayRun: () => true,
    run: (_, { offset }) => void calls.push(`run ${offset}`),
    postpone: (_, { offset }) => void calls.push(`postpone ${offset}`),
    crashLoop: (_, { offset }, deaths) => calls.push(`dead letter ${offset} of ${deaths}`) > 0,
    hurry: () => undefined,
    ...over,
  })
  const open = (marks: Partial<CrashMarks>) => {
    const one = lane()
    guard.watch(one)
    guard.opened(one, { open: undefined, careful: 0, carefulBy: undefined, suspects: [], ...marks })
    return one
  }
  return { guard, open, calls }
}

const rounds = () => new Promise((resolve) => setImmediate(resolve))

test('crash-loop: a death counts against the suspect that was marked as running, and against none that waited', () => {
  const { open } = setUp()
  const suspects = [
    { offset: 3n, deaths: 1, by: ['erst'], running: false },
    { offset: 5n, deaths: 1, by: ['erst'], running: true },
  ]
  const told = (by: string | undefined) => {
    const one = open({ open: by === undefined ? undefined : { records: 9, by }, careful: 2, suspects })
    return [one.caution?.until, [...(one.caution?.suspects ?? [])]]
  }
  const asTheyWere = [3n, 5n].map((offset) => [offset, { count: 1, by: ['erst'] }])
  expect(told('dead')).toEqual([9, [asTheyWere[0], [5n, { count: 2, by: ['erst', 'dead'] }]]])
  // A clean end; and a mark of our own.
  expect(told(undefined)).toEqual([2, asTheyWere])
  expect(told('self')).toEqual([2, asTheyWere])
})

test.each([
  ['all are dead', ['next'], ['dead letter 5 of 3'], undefined],
  ['nobody can tell', undefined, ['dead letter 5 of 3'], undefined],
  ['one of them lives', ['next', 'drei'], ['postpone 5'], { count: 2, by: ['eins', 'zwei'] }],
  ['all of them live', ['eins', 'zwei', 'drei'], ['postpone 5'], { count: 0, by: [] }],
])('crash-loop: three deaths, and %s', async (_, alive, calls, left) => {
  const given = setUp({ alive: () => Promise.resolve(alive && new Set(alive)) })
  const suspect = { offset: 5n, deaths: 2, by: ['eins', 'zwei'], running: true }
  const one = given.open({ open: { records: 9, by: 'drei' }, suspects: [suspect] })
  given.guard.start(one, entry(5), one.caution!)
  await rounds()
  expect(given.calls).toEqual(calls)
  if (left !== undefined) expect(one.caution?.suspects.get(5n)).toEqual(left)
})

test('crash-loop: what is out of suspicion runs when it is started again, and is no suspect to others', async () => {
  const { guard, open, calls } = setUp({ alive: () => Promise.resolve(new Set(['eins', 'zwei', 'drei'])) })
  const suspect = { offset: 5n, deaths: 2, by: ['eins', 'zwei'], running: true }
  const one = open({ open: { records: 9, by: 'drei' }, suspects: [suspect] })
  guard.start(one, entry(5), one.caution!)
  await rounds()
  guard.start(one, entry(5), one.caution!)
  expect(calls).toEqual(['postpone 5', 'run 5'])
})

test('crash-loop: a lane that is closed while it is asked who lives has neither a dead letter nor a place', async () => {
  let tell!: (alive: ReadonlySet<string>) => void
  const { guard, open, calls } = setUp({ alive: () => new Promise((resolve) => (tell = resolve)) })
  const suspect = { offset: 5n, deaths: 2, by: ['eins', 'zwei'], running: true }
  const one = open({ open: { records: 9, by: 'drei' }, suspects: [suspect] })
  guard.start(one, entry(5), one.caution!)
  expect(guard.waiting).toBe(1)
  guard.closed(one)
  tell(new Set())
  await rounds()
  expect([guard.waiting, calls]).toEqual([0, ['postpone 5']])
})
