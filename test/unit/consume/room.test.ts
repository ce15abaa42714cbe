import { describe, expect, test } from 'vitest'
import { CommitTracker } from '../../../src/consume/commit-tracker'
import { detach, pinsTooMuch } from '../../../src/consume/detach'
import { Lane } from '../../../src/consume/lane'
import { fetchSizes, fit, roomOf } from '../../../src/consume/room'
import { message } from './given'

const MIB = 1024 * 1024
const LIMITS = { maxBufferedRecords: 50_000, maxBufferedBytes: 64 * MIB }
const laneOf = (): Lane => new Lane('orders', 0, 'main', false, undefined)
const valued = (offset: number, bytes: number) => message(offset, { value: Buffer.alloc(bytes) })

describe('P11: what fits', () => {
  test('as many records as there is room for, by number and by bytes; an empty lane takes one whatever its size', () => {
    const messages = Array.from({ length: 10 }, (_, n) => valued(n, 1_000))
    const room = (records: number, bytes: number) => ({ records, bytes, of: bytes })
    expect(fit(messages, room(100, MIB), true).count).toBe(10)
    expect(fit(messages, room(3, MIB), true).count).toBe(3)
    const { count, bytes, payload } = fit(messages, room(100, 5_000), false)
    expect(count).toBeLessThan(5)
    expect(bytes).toBeLessThanOrEqual(5_000)
    expect(payload).toBeGreaterThanOrEqual(count * 1_000)
    expect(fit(messages, room(0, 0), true).count).toBe(1)
    expect(fit(messages, room(0, 0), false).count).toBe(0)
    expect(fit(messages, room(-5, -5), false).count).toBe(0)
  })

  test('each header costs more than its bytes, a repeated one each time; a replay is noticed', () => {
    const bare = fit([message(0)], { records: 1, bytes: MIB, of: MIB }, true)
    const headers = { a: Buffer.from('1'), b: [Buffer.from('2'), Buffer.from('3')], 'x-replayed-from-dlq': null }
    const full = fit([{ ...message(0), headers }], { records: 1, bytes: MIB, of: MIB }, true)
    expect(full.payload - bare.payload).toBeGreaterThanOrEqual(3)
    expect(full.bytes - bare.bytes).toBeGreaterThan(4 * 100)
    expect([bare.replayed, full.replayed]).toEqual([false, true])
  })

  test('what is settled and waits for the frontier takes room too', () => {
    const lane = laneOf()
    lane.open(0n, undefined)
    const before = roomOf(lane, 1, LIMITS)
    const entries = Array.from({ length: 1_000 }, (_, n) => ({ settled: false, offset: String(n), tail: undefined }))
    for (const entry of entries) lane.tracker.add(entry as never)
    for (const entry of entries.slice(1)) lane.tracker.settle(entry as never)
    expect(roomOf(lane, 1, LIMITS).bytes).toBeLessThan(before.bytes - 999 * 100)
  })

  test('a fetch is a small part of the room, and of one partition a small part of its share', () => {
    expect(fetchSizes(LIMITS, 1)).toEqual({ maxBytes: 4 * MIB, maxBytesPerPartition: 384 * 1024 })
    expect(fetchSizes({ ...LIMITS, maxBufferedBytes: 16 * MIB }, 1).maxBytes).toBe(MIB)
    expect(fetchSizes(LIMITS, 1_000).maxBytesPerPartition).toBeLessThan(64 * 1024)
    expect(fetchSizes({ ...LIMITS, maxBufferedBytes: 1024 }, 0)).toEqual({
      maxBytes: 64 * 1024,
      maxBytesPerPartition: 32 * 1024,
    })
  })
})

describe('P11: what waits keeps no response in memory', () => {
  test('P3: copies are the same bytes, in memory of their own; null, repeated and odd headers stay what they are', () => {
    const response = Buffer.alloc(MIB, 7)
    const headers = Object.fromEntries([
      ['a', response.subarray(3, 6)],
      ['null', null],
      ['twice', [response.subarray(6, 7), null, 'text']],
      ['__proto__', [Object.prototype, response.subarray(7, 9)]],
    ]) as never
    const from = { ...message(5), key: response.subarray(0, 3), value: response.subarray(10, 500), headers }
    const [own, other] = detach([from, { ...message(6), key: null, value: null }])
    expect(own).toEqual(from)
    expect(Object.keys(own!.headers!)).toEqual(['a', 'null', 'twice', '__proto__'])
    expect(own!.value!.buffer.byteLength).toBeLessThan(600)
    expect([other!.key, other!.value]).toEqual([null, null])
    response.fill(0)
    expect(own!.value!.every((byte) => byte === 7)).toBe(true)
  })

  test('a response that is mostly its own is kept; one of others, as long as the share allows, until the lane is empty', () => {
    const lane = laneOf()
    const of = (bytes: number) => {
      const response = Buffer.alloc(MIB)
      return [{ ...message(0), value: response.subarray(0, bytes) }]
    }
    const room = { records: 10, bytes: 2.5 * MIB, of: 2.5 * MIB }
    expect(pinsTooMuch(lane, of(MIB), MIB, room)).toBe(false)
    lane.held = 1
    expect(pinsTooMuch(lane, of(10), 10, room)).toBe(false)
    expect(pinsTooMuch(lane, of(10), 10, room)).toBe(false)
    expect(pinsTooMuch(lane, of(10), 10, room)).toBe(true)
    lane.held = 0
    expect(pinsTooMuch(lane, of(10), 10, room)).toBe(false)
  })

  test('P1: a record that is settled out of turn leaves no more than its offset behind, and the frontier is the same', () => {
    const tracker = new CommitTracker<{ settled: boolean; offset: string; tail: bigint | undefined; place?: number }>(
      0n,
    )
    const items = Array.from({ length: 3_000 }, (_, n) => ({
      settled: false,
      offset: String(n * 2),
      tail: n === 2_999 ? 9_000n : undefined,
    }))
    for (const item of items) tracker.add(item)
    for (const item of items.slice(0, 1_500)) tracker.settle(item)
    for (const item of items.slice(1_600)) tracker.settle(item)
    expect(tracker.frontier).toBe(2_999n)
    expect(tracker.settledBeyond).toBe(1_400)
    expect(tracker.beyond()).toEqual([{ from: 3_200n, to: 9_000n }])
    tracker.pass(9_100n)
    for (const item of items.slice(1_500, 1_600)) tracker.settle(item)
    expect([tracker.frontier, tracker.length]).toEqual([9_100n, 0])
  })
})
