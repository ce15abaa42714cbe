import { describe, expect, test } from 'vitest'
import { takeGroups } from '../../../src/consume/groups-in-process'
import type { Entry } from '../../../src/consume/lane'
import type { LaneQueue } from '../../../src/consume/lane-queue'
import { createPauses } from '../../../src/consume/pauses'
import { checkOutgoing } from '../../../src/consume/staged'
import { createTurns } from '../../../src/consume/turns'
import { isRetrylineError } from '../../../src/errors'
import { createTestClock } from '../../helpers/test-clock'
import { entry, lane, recorder } from './given'

describe('lane', () => {
  test('close() drops what has not started, says how much, and wakes who waits', async () => {
    const one = lane()
    one.open(0n, undefined)
    const queue = one.queue as LaneQueue<Entry>
    queue.push(entry(0))
    queue.push(entry(1))
    queue.take(0)
    const told: string[] = []
    one.onChange(() => told.push('waits'))
    one.onChange(() => told.push('has gone'))()
    expect(told).toEqual([])
    expect(one.close()).toBe(1)
    expect([told, one.awaited]).toEqual([['waits'], false])
    expect([one.closed, one.queue.length]).toEqual([true, 0])
  })

  test('P9: close() cancels the due timer', () => {
    const clock = createTestClock()
    const one = lane(0, { gated: true })
    one.dueTimer = clock.at(clock.now() + 1_000, () => undefined)
    one.close()
    expect(clock.timers).toBe(0)
  })

  test('P11: a record counts as held until it is settled, and once', () => {
    const one = lane()
    one.open(0n, undefined)
    const record = entry(0, { bytes: 100 })
    one.tracker.add(record)
    one.held++
    one.bytes += record.bytes
    one.settle(record)
    one.settle(record)
    expect([one.held, one.bytes, one.dirty, one.tracker.frontier]).toEqual([0, 0, true, 1n])
  })
})

describe('turns', () => {
  test('P5: who waits longest for a place gets the next', () => {
    const turns = createTurns<string>(createTestClock(), () => undefined)
    for (const name of ['a', 'b', 'a', 'c']) turns.wait(name)
    expect([turns.next(), turns.next(), turns.next(), turns.next()]).toEqual(['a', 'b', 'c', undefined])
    turns.wait('a')
    expect(turns.next()).toBe('a')
  })

  test('handlers that never wait give way after 10 ms, and go on in a macrotask of their own', async () => {
    const clock = createTestClock()
    const pumped: string[] = []
    let now = 0
    const turns = createTurns<string>({ ...clock, monotonic: () => now }, (name) => pumped.push(name))
    const starts = (count: number): boolean[] => Array.from({ length: count }, () => turns.isLong())
    expect(starts(64)).not.toContain(true)
    now = 11
    expect(starts(64).at(-1)).toBe(true)
    turns.later('a')
    turns.later('a')
    turns.later('b')
    expect(pumped).toEqual([])
    await clock.settle()
    expect(pumped).toEqual(['a', 'b'])
    // The loop has turned: the count begins anew.
    expect(starts(64)).not.toContain(true)
    await clock.settle()
    expect(clock.timers).toBe(0)
  })
})

describe('pauses', () => {
  test('of one topic, of all, and what ends which', () => {
    const { emitter, of } = recorder(createTestClock())
    let resumed = 0
    const pauses = createPauses(emitter, ['a', 'b'], () => resumed++)
    expect([pauses.isPaused('a'), pauses.any()]).toEqual([false, false])
    pauses.pause({ topic: 'a' })
    expect([pauses.isPaused('a'), pauses.isPaused('b'), pauses.any()]).toEqual([true, false, true])
    pauses.pause()
    expect(pauses.isPaused('b')).toBe(true)
    pauses.resume({ topic: 'a' })
    expect(pauses.isPaused('a')).toBe(true)
    pauses.resume()
    expect([pauses.isPaused('a'), pauses.any(), resumed]).toEqual([false, false, 2])
    expect([of('paused').length, of('resumed').length]).toEqual([2, 2])
  })
})

describe('P13: a pause that is not understood pauses nothing', () => {
  test.each([['a' as never], [{ topic: 'nope' }], [{ topic: 7 } as never], [null as never]])('%j', (target) => {
    const { emitter, of } = recorder(createTestClock())
    const pauses = createPauses(emitter, ['a'], () => undefined)
    expect(() => pauses.pause(target)).toThrow(target === ('a' as never) ? /'a'|"a"/ : /give \{ topic \} with one of a/)
    expect(() => pauses.resume(target)).toThrow(/give \{ topic \}/)
    expect([pauses.any(), of('paused').length, of('resumed').length]).toEqual([false, 0, 0])
  })
})

describe('two consumers of one group in one process', () => {
  test('are refused, all groups or none; on another cluster, or once released, they are not', () => {
    const release = takeGroups('c1', ['g', 'g.retry.1m'])
    expect(() => takeGroups('c1', ['other', 'g.retry.1m'])).toThrow(/'g\.retry\.1m' is already consumed/)
    const other = takeGroups('c1', ['other'])
    const elsewhere = takeGroups('c2', ['g'])
    release()
    const again = takeGroups('c1', ['g'])
    for (const free of [other, elsewhere, again]) free()
    try {
      takeGroups('c1', ['g', 'g'])()
    } catch (error) {
      expect(isRetrylineError(error, 'RETRYLINE_GROUP_IN_USE')).toBe(true)
    }
  })
})

describe('P13: a record given to ctx.send()', () => {
  test('text becomes bytes; null and repeated headers are kept', () => {
    expect(
      checkOutgoing({ topic: 'a', key: 'k', value: null, headers: { h: ['1', Buffer.from('2')] }, partition: 0 }),
    ).toEqual({
      topic: 'a',
      partition: 0,
      key: Buffer.from('k'),
      value: null,
      headers: [
        ['h', Buffer.from('1')],
        ['h', Buffer.from('2')],
      ],
    })
    expect(checkOutgoing({ topic: 'a', value: 'v' })).toMatchObject({ key: null, partition: undefined, headers: [] })
  })

  const bad: [unknown, RegExp][] = [
    [undefined, /a message is undefined/],
    ['text', /a message is "text"/],
    [{ value: 'v' }, /topic is undefined/],
    [{ topic: '', value: 'v' }, /topic is "";/],
    [{ topic: 'no topic!', value: 'v' }, /topic "no topic!" is not a legal topic name/],
    [{ topic: 't'.repeat(40_000), value: 'v' }, /is 40000 characters long; Kafka takes at most 249/],
    [{ topic: 'a', value: 'v', headers: { n: 7 } }, /headers\["n"\] is 7; give a Buffer or text/],
    [{ topic: 'a', value: 'v', headers: new Map() }, /headers is an empty object; give a plain object/],
    [{ topic: 'a' }, /value is undefined; give a Buffer, text or null/],
    [{ topic: 'a', value: { id: 1 } }, /value is an object with id/],
    [{ topic: 'a', value: 'v', key: 7 }, /key is 7/],
    [{ topic: 'a', value: 'v', partition: -1 }, /partition is -1; give a whole number from 0/],
    [{ topic: 'a', value: 'v', partition: 1.5 }, /partition is 1\.5/],
    [{ topic: 'a', value: Object.create(null) }, /value is an empty object/],
    [{ topic: 'a', value: Symbol('s') }, /value is Symbol\(s\)/],
  ]
  for (const [message, says] of bad) {
    test(`${String(says)}`, () => {
      expect(() => checkOutgoing(message as never)).toThrow(says)
      try {
        checkOutgoing(message as never)
      } catch (error) {
        expect(isRetrylineError(error, 'RETRYLINE_PUBLISH')).toBe(true)
      }
    })
  }
})
