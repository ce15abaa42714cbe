import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Rec } from '../../../src/record'
import { CLOCK_SKEW_MS, type Handled, openMain, openRetry } from '../../../src/route'
import { anyHeaders } from '../record/arbitrary'
import { headersOf, HOUR, MINUTE, NOW, recOf, retryRec, SECOND, topologies, topologyOf } from './given'

const topology = topologyOf({ formerGroupIds: ['old-billing'] })
const open = (rec: Rec, receivedAt = NOW) => openRetry(rec, topology, receivedAt)
const handled = (rec: Rec, receivedAt = NOW): Handled => {
  const opened = open(rec, receivedAt)
  if (opened.kind !== 'handle') throw new Error(`${opened.kind} instead of handle`)
  return opened
}

describe('a record of ours on a retry topic', () => {
  it('is read as it was written', () => {
    expect(open(retryRec())).toMatchObject({
      kind: 'handle',
      main: 'orders',
      tier: { name: '1m' },
      attempt: 2,
      dueAt: NOW + MINUTE,
      original: { topic: 'orders', partition: 7, offset: 9007199254740993n, timestamp: NOW - HOUR },
      firstFailedAt: NOW,
      group: 'billing',
      replay: undefined,
      problems: [],
    })
  })

  it('P3: gives null back to its null headers', () => {
    const rec = retryRec({ a: '', b: '', 'x-null-headers': '["a"]' })
    expect(Object.fromEntries(handled(rec).headers)).toMatchObject({ a: null, b: Buffer.alloc(0) })
  })

  it('keeps an early attempt that was put on a long tier', () => {
    const rec = retryRec({ 'x-attempt': '2', 'x-due-at': String(NOW + HOUR) }, { topic: 'orders.retry.1h' })
    expect(handled(rec)).toMatchObject({ attempt: 2, dueAt: NOW + HOUR, problems: [] })
  })

  it('keeps what a replay wrote', () => {
    const rec = retryRec({ 'x-replayed-from-dlq': 'true', 'x-replay-count': '3', 'x-replay-for-group': 'billing' })
    expect(handled(rec).replay).toEqual({ count: 3, forGroup: 'billing' })
    const forged = retryRec({ 'x-replayed-from-dlq': 'true', 'x-replay-count': '0' })
    expect(handled(forged).replay).toEqual({ count: 1, forGroup: undefined })
  })
})

describe('whose it is', () => {
  it('another group: skipped, whatever else it says', () => {
    const rec = retryRec({ 'x-consumer-group': 'shipping', 'x-original-topic': '__consumer_offsets' })
    expect(open(rec)).toEqual({ kind: 'skip', group: 'shipping' })
  })

  it('a former group of ours: handled', () => {
    expect(open(retryRec({ 'x-consumer-group': 'old-billing' }))).toMatchObject({
      kind: 'handle',
      group: 'old-billing',
    })
  })

  it('no readable group: handled, since skipping could lose it', () => {
    for (const group of [undefined, null, '', 'x'.repeat(256)]) {
      expect(open(retryRec({ 'x-consumer-group': group })).kind).toBe('handle')
    }
  })

  it('a replay straight to the retry topic names its group too', () => {
    const replay = { 'x-consumer-group': undefined, 'x-replayed-from-dlq': 'true' }
    expect(open(retryRec({ ...replay, 'x-replay-for-group': 'shipping' }))).toEqual({ kind: 'skip', group: 'shipping' })
    expect(open(retryRec({ ...replay, 'x-replay-for-group': 'billing' })).kind).toBe('handle')
  })
})

describe('R33: a forged attempt', () => {
  it.each([
    [undefined, '10m', 3],
    ['-5', '10m', 3],
    ['abc', '10m', 3],
    ['[1,2]', '10m', 3],
    ['1e9', '10m', 3],
    ['', '10m', 3],
    [null, '10m', 3],
    ['0', '10m', 2],
    ['1', '10m', 2],
    ['2', '10m', 2],
    ['4', '10m', 4],
    ['5', '10m', 4],
    ['1000000000', '10m', 4],
    ['1000000000', '1m', 4],
  ])('x-attempt %j on tier %s is taken as %d', (text, tier, attempt) => {
    const opened = handled(retryRec({ 'x-attempt': text }, { topic: `orders.retry.${tier}` }), NOW)
    expect(opened.attempt).toBe(attempt)
    expect(opened.problems.length > 0).toBe(text !== '2' && text !== '4')
  })

  it('is within the attempts of a schedule that has become empty', () => {
    const empty = topologyOf({ delays: [], formerTiers: [{ delayMs: MINUTE }] })
    expect(openRetry(retryRec({ 'x-attempt': '4' }), empty, NOW)).toMatchObject({ kind: 'handle', attempt: 1 })
  })
})

describe('R32 R33: the due time', () => {
  const dueAt = (text: string | null | undefined, more: Partial<Rec> = {}, receivedAt = NOW) => {
    const { dueAt: due, problems } = handled(retryRec({ 'x-due-at': text }, more), receivedAt)
    return { after: (due ?? NaN) - receivedAt, told: problems.length > 0 }
  }

  it.each([undefined, null, '', '-1', 'NaN', 'Infinity', '1e3', '[5]', 'tomorrow', 'x'.repeat(1_000_000)])(
    'missing or unreadable counts from when the record was written',
    (text) => {
      expect(dueAt(text)).toEqual({ after: MINUTE, told: true })
      expect(dueAt(text, { timestamp: NOW - 20 * SECOND })).toEqual({ after: 40 * SECOND, told: true })
      expect(dueAt(text, { timestamp: NOW + HOUR })).toEqual({ after: MINUTE, told: true })
      expect(dueAt(text, { timestamp: -1 })).toEqual({ after: MINUTE, told: true })
    },
  )

  it('in the past is due', () => {
    expect(dueAt('0')).toEqual({ after: -NOW, told: false })
  })

  it('of a process whose clock is ahead is believed', () => {
    expect(dueAt(String(NOW + MINUTE + CLOCK_SKEW_MS))).toEqual({ after: MINUTE + CLOCK_SKEW_MS, told: false })
  })

  it('further ahead is brought forward, also when the record is read again and again', () => {
    for (const text of [String(NOW + MINUTE + CLOCK_SKEW_MS + 1), '253402300799000', '999999999999999']) {
      expect(dueAt(text)).toEqual({ after: MINUTE, told: true })
      expect(dueAt(text, {}, NOW + 50 * SECOND).after).toBe(text.length > 13 ? 10 * SECOND : MINUTE + 10 * SECOND + 1)
      expect(dueAt(text, { timestamp: 9e15 }).after).toBe(MINUTE)
    }
  })

  it('leaves room for the jitter', () => {
    const jittery = topologyOf({ jitter: 1 })
    const read = (due: number) => openRetry(retryRec({ 'x-due-at': String(due) }), jittery, NOW)
    expect(read(NOW + 2 * MINUTE)).toMatchObject({ dueAt: NOW + 2 * MINUTE, problems: [] })
    expect(read(NOW + HOUR)).toMatchObject({ dueAt: NOW + 2 * MINUTE })
  })
})

describe('R33: where it first stood', () => {
  it.each(['refunds', '__consumer_offsets', 'orders.retry.1m', 'orders.dlq', 'a/b', '', null])(
    'another topic (%j) is never followed: rejected',
    (topic) => {
      const opened = open(retryRec({ 'x-original-topic': topic }))
      expect(opened).toMatchObject({
        kind: 'reject',
        reason: 'bad-envelope',
        main: 'orders',
        attempt: 1,
        original: { topic: 'orders', partition: 2, offset: 40n, timestamp: NOW },
      })
      expect(opened.kind === 'reject' && opened.problems.join()).toContain('x-original-topic')
    },
  )

  it.each(['x-original-partition', 'x-original-offset', 'x-original-timestamp'])('%s unreadable: rejected', (name) => {
    expect(open(retryRec({ [name]: 'abc' }))).toMatchObject({ kind: 'reject', reason: 'bad-envelope' })
  })

  it('missing: that of the copy', () => {
    const origin = ['topic', 'partition', 'offset', 'timestamp'].map((part) => [`x-original-${part}`, undefined])
    expect(handled(retryRec(Object.fromEntries(origin))).original).toEqual({
      topic: 'orders',
      partition: 2,
      offset: 40n,
      timestamp: NOW,
    })
  })
})

it('a first failure that is still to come is taken for now, so that a deadline is never put off', () => {
  const rec = retryRec({ 'x-first-failed-at': '9999-12-31T23:59:59.999Z' })
  expect(handled(rec).firstFailedAt).toBe(NOW)
  expect(handled(retryRec({ 'x-first-failed-at': undefined })).firstFailedAt).toBeUndefined()
})

it('is a bug to open as a retry what stands elsewhere', () => {
  expect(() => open(recOf())).toThrow("'orders' is not a retry topic of this consumer")
})

describe('a record of a main topic', () => {
  const replayed = { 'x-replayed-from-dlq': 'true', 'x-replay-count': '2', 'x-replay-for-group': 'billing' }
  const origin = {
    'x-original-topic': 'orders',
    'x-original-partition': '1',
    'x-original-offset': '5',
    'x-original-timestamp': '6',
  }
  const openOrders = (texts: Record<string, string>) => openMain(recOf({ headers: headersOf(texts) }), topology)

  it('P4: is at its first attempt, whatever its headers say', () => {
    const forged = { ...origin, 'x-attempt': '4', 'x-due-at': '253402300799000', 'x-consumer-group': 'shipping' }
    expect(openOrders({ ...forged, 'x-replay-for-group': 'shipping', 'x-null-headers': '["a"]', a: '' })).toMatchObject(
      {
        kind: 'handle',
        attempt: 1,
        tier: undefined,
        dueAt: undefined,
        original: { topic: 'orders', partition: 2, offset: 40n },
        replay: undefined,
        firstFailedAt: undefined,
        problems: [],
      },
    )
  })

  it('P3: is not given nulls by a foreign x-null-headers', () => {
    const rec = recOf({ headers: headersOf({ a: '', 'x-null-headers': '["a"]' }) })
    expect(openMain(rec, topology)).toMatchObject({ headers: rec.headers })
  })

  it('R19: that was replayed for another group is skipped, unless the group was ours', () => {
    expect(openOrders({ ...replayed, 'x-replay-for-group': 'shipping' })).toEqual({ kind: 'skip', group: 'shipping' })
    expect(openOrders({ ...replayed, 'x-replay-for-group': 'old-billing' }).kind).toBe('handle')
    expect(openOrders({ 'x-replayed-from-dlq': 'true' })).toMatchObject({ kind: 'handle', replay: { count: 1 } })
  })

  it('that was replayed starts again at attempt 1, and keeps where it first stood', () => {
    expect(openOrders({ ...replayed, ...origin, a: '', 'x-null-headers': '["a"]', 'x-attempt': '3' })).toMatchObject({
      kind: 'handle',
      attempt: 1,
      original: { topic: 'orders', partition: 1, offset: 5n, timestamp: 6 },
      replay: { count: 2, forGroup: 'billing' },
      firstFailedAt: undefined,
      problems: [],
    })
  })

  it('P4: is never taken for a record of another topic', () => {
    for (const forged of [{ 'x-original-topic': 'refunds' }, { 'x-original-offset': '-1' }]) {
      expect(openOrders({ ...replayed, ...origin, ...forged })).toMatchObject({
        kind: 'handle',
        original: { topic: 'orders', partition: 2, offset: 40n },
      })
    }
  })
})

describe('P4: whatever the headers', () => {
  it('opening never throws and stays in bounds', () => {
    const timestamps = fc.oneof(fc.maxSafeInteger(), fc.constantFrom(-1, 0, NOW))
    fc.assert(
      fc.property(topologies, anyHeaders, timestamps, fc.nat(20), (any, headers, timestamp, pick) => {
        const retries = any.allTopics().filter((role) => role.role === 'retry')
        const role = retries[pick % Math.max(1, retries.length)]
        const rec = recOf({ headers, timestamp, topic: role?.topic ?? 'orders' })
        const opened = role ? openRetry(rec, any, NOW) : openMain(rec, any)
        if (opened.kind === 'skip') return
        expect(opened.main).toBe(role?.main ?? 'orders')
        expect(opened.original.topic).toBe(opened.main)
        expect(opened.attempt).toBeGreaterThanOrEqual(1)
        expect(opened.attempt).toBeLessThanOrEqual(any.maxAttempts)
        const longest = Math.ceil((opened.tier?.delayMs ?? 0) * (1 + any.jitter))
        expect((opened.dueAt ?? 0) - NOW).toBeLessThanOrEqual(longest + CLOCK_SKEW_MS)
      }),
    )
  })
})
