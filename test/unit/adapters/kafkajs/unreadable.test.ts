import { describe, expect, test } from 'vitest'
import { createUnreadable } from '../../../../src/adapters/kafkajs/unreadable'
import { createTestClock } from '../../../helpers/test-clock'

const A = { topic: 'orders', partition: 0 }
const B = { topic: 'orders', partition: 1 }

function setUp() {
  const clock = createTestClock()
  const calls: string[] = []
  const told: string[] = []
  const note = (what: string) => (list: { topic: string; partitions?: number[] }[]) =>
    void calls.push(...list.map(({ partitions }) => `${what} ${partitions?.join()}`))
  const consumer = {
    pause: note('pause'),
    resume: note('resume'),
    seek: ({ partition, offset }: { partition: number; offset: string }) =>
      void calls.push(`seek ${partition} ${offset}`),
  }
  const unreadable = createUnreadable(
    clock,
    () => consumer as never,
    ({ partition }, offset, _, againInMs) => told.push(`${partition}@${offset} again in ${againInMs}`),
  )
  return { clock, calls, told, unreadable, since: () => calls.splice(0) }
}

describe('a partition whose next batch cannot be decoded', () => {
  test('is paused, and looked at again later and later, up to 5 minutes', async () => {
    const { clock, told, unreadable, since } = setUp()
    for (let i = 0; i < 10; i++) {
      unreadable.found(A, 7n, new Error('no codec'))
      expect(since()).toEqual(['pause 0'])
      await clock.advance(clock.nextIn!)
      expect(since()).toEqual(['resume 0'])
    }
    expect(told.map((line) => Number(/\d+$/.exec(line)![0]))).toEqual(
      [1, 2, 4, 8, 16, 32, 64, 128, 256, 300].map((s) => s * 1_000),
    )
  })

  test('stays paused whatever the group resumes, and is resumed at the look only where the group wishes so', async () => {
    const { clock, unreadable, since } = setUp()
    unreadable.pause(A)
    unreadable.found(A, 7n, undefined)
    unreadable.pause(B)
    unreadable.resume(B)
    expect(since()).toEqual(['pause 0', 'pause 0', 'pause 1', 'resume 1'])
    await clock.advance(1_000)
    expect(since()).toEqual([])
    unreadable.resume(A)
    expect(since()).toEqual(['resume 0'])
    unreadable.found(A, 7n, undefined)
    unreadable.resume(A)
    expect(since()).toEqual(['pause 0'])
    await clock.advance(2_000)
    expect(since()).toEqual(['resume 0'])
  })

  test('a fetch that was under way when it was found tells nothing again', () => {
    const { told, unreadable, clock } = setUp()
    unreadable.found(A, 7n, undefined)
    unreadable.found(A, 7n, undefined)
    expect(told).toEqual(['0@7 again in 1000'])
    expect(clock.timers).toBe(1)
  })

  test('sought elsewhere, or read past: its story is over', async () => {
    const { unreadable, since, clock, told } = setUp()
    unreadable.found(A, 7n, undefined)
    unreadable.seek(A, 7n)
    unreadable.read(A, 7n)
    expect(since()).toEqual(['pause 0', 'seek 0 7'])
    unreadable.seek(A, 3n)
    expect(since()).toEqual(['resume 0', 'seek 0 3'])
    unreadable.found(A, 7n, undefined)
    unreadable.read(A, 8n)
    expect(since()).toEqual(['pause 0', 'resume 0'])
    unreadable.found(A, 7n, undefined)
    await clock.advance(1_000)
    since()
    unreadable.read(A, 8n)
    expect(since()).toEqual([])
    unreadable.found(A, 9n, undefined)
    expect(told.at(-1)).toBe('0@9 again in 1000')
    expect(clock.timers).toBe(1)
  })

  test('an assignment keeps what is still ours, a crash nothing; no timer stays', async () => {
    const { unreadable, since, clock } = setUp()
    unreadable.found(A, 7n, undefined)
    unreadable.found(B, 7n, undefined)
    unreadable.keep([B])
    since()
    unreadable.resume(A)
    unreadable.resume(B)
    expect(since()).toEqual(['resume 0'])
    unreadable.forget()
    expect(clock.timers).toBe(0)
    unreadable.resume(B)
    expect(since()).toEqual(['resume 1'])
  })

  test('a consumer that does not run is no matter', () => {
    const clock = createTestClock()
    const dead = () => {
      throw new Error('it does not run')
    }
    const unreadable = createUnreadable(
      clock,
      () => ({ pause: dead, resume: dead, seek: dead }) as never,
      () => undefined,
    )
    unreadable.found(A, 1n, undefined)
    unreadable.resume(A)
    unreadable.seek(A, 5n)
    expect(clock.timers).toBe(0)
  })
})
