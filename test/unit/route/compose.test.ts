import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isOwnHeader, OWN_HEADER_BUDGET, readEnvelope } from '../../../src/envelope'
import { fromKafkaHeaders, type Header, type Outgoing, type Rec, toKafkaHeaders } from '../../../src/record'
import {
  composeCopy,
  decideRoute,
  type Failure,
  openMain,
  openRetry,
  partitionForKey,
  type RoutedVerdict,
  toDeadLetter,
} from '../../../src/route'
import type { Topology } from '../../../src/topology'
import { anyHeaders, byName, bytes } from '../record/arbitrary'
import { decoded, throughKafkajs } from '../record/kafkajs-wire'
import { headersOf, HOUR, MINUTE, NOW, recOf, retryRec, topologies, topologyOf } from './given'

const failure: Failure = {
  error: { name: 'HttpError', message: 'HTTP 503', stack: 'HttpError: HTTP 503\n    at pay' },
  because: 'the HTTP status asks for a retry',
  at: NOW,
  groupId: 'billing',
}

/** One failed attempt: what is read, handled, and published. */
function fail(rec: Rec, topology: Topology, verdict: RoutedVerdict, now: number): Outgoing | 'skipped' {
  const opened = topology.origin(rec.topic) ? openRetry(rec, topology, now) : openMain(rec, topology)
  if (opened.kind === 'skip') return 'skipped'
  const decision =
    opened.kind === 'reject'
      ? toDeadLetter({ ...opened, topology }, opened.reason)
      : decideRoute({ ...opened, verdict, topology, now, random: () => 0.5 })
  return composeCopy(rec, opened, decision, { ...failure, at: now }, 3)
}

/** The copy as its reader gets it, through kafkajs's encoder and decoder. */
function delivered(out: Outgoing, offset: bigint, timestamp: number): Rec {
  const headers = fromKafkaHeaders(throughKafkajs(toKafkaHeaders(out.headers)))
  return { ...out, offset, timestamp, headers }
}

const textsOf = (out: Outgoing) => Object.fromEntries(out.headers.map(([name, value]) => [name, value?.toString()]))
const foreign = (headers: readonly Header[]) => byName(headers.filter(([name]) => !isOwnHeader(name)))
const retry: RoutedVerdict = { kind: 'retry' }

describe('a copy', () => {
  const topology = topologyOf()

  it('tells a first failure', () => {
    const rec = recOf({ headers: headersOf({ traceparent: '00-1' }) })
    const out = fail(rec, topology, retry, NOW) as Outgoing
    expect(out).toMatchObject({ topic: 'orders.retry.1m', partition: 2, key: null, value: rec.value })
    expect(textsOf(out)).toEqual({
      traceparent: '00-1',
      'x-attempt': '2',
      'x-due-at': String(NOW + MINUTE),
      'x-original-topic': 'orders',
      'x-original-partition': '2',
      'x-original-offset': '40',
      'x-original-timestamp': String(NOW),
      'x-consumer-group': 'billing',
      'x-first-failed-at': '2024-05-01T12:00:00.000Z',
      'x-last-failed-at': '2024-05-01T12:00:00.000Z',
      'x-error-class': 'HttpError',
      'x-error': 'HTTP 503',
      'x-history':
        '[{"attempt":1,"at":"2024-05-01T12:00:00.000Z","class":"HttpError","because":"the HTTP status asks for a retry"}]',
    })
  })

  it('keeps the first failure and where the record first stood', () => {
    const out = fail(retryRec(), topology, retry, NOW + HOUR) as Outgoing
    expect(textsOf(out)).toMatchObject({
      'x-attempt': '3',
      'x-original-partition': '7',
      'x-original-offset': '9007199254740993',
      'x-first-failed-at': '2024-05-01T12:00:00.000Z',
      'x-last-failed-at': '2024-05-01T13:00:00.000Z',
    })
  })

  it('has a stack and a reason on the dead letter topic only, and no due time there', () => {
    const out = fail(retryRec({ 'x-attempt': '4' }), topology, retry, NOW) as Outgoing
    expect(textsOf(out)).toMatchObject({ 'x-failure-reason': 'exhausted', 'x-error-stack': failure.error.stack })
    expect(textsOf(out)).toMatchObject({ 'x-attempt': '4' })
    expect(textsOf(out)).not.toHaveProperty('x-due-at')
  })

  it('names the release that ran, and not one that ran before', () => {
    const rec = retryRec({ 'x-release': '1.0.0' })
    const opened = openRetry(rec, topology, NOW)
    if (opened.kind === 'skip') throw new Error('skipped')
    const decision = decideRoute({ ...opened, verdict: retry, topology, now: NOW, random: () => 0 })
    const copy = (more: Partial<Failure>) => textsOf(composeCopy(rec, opened, decision, { ...failure, ...more }, 3))
    expect(copy({ release: '1.1.0' })['x-release']).toBe('1.1.0')
    expect(copy({})).not.toHaveProperty('x-release')
    expect(copy({ latenessMs: 3.4 })['x-history']).toContain('"late":3')
    expect(copy({ latenessMs: -1 })['x-history']).toContain('"late":0')
  })

  it('R33: of a record that was rejected goes to its own dead letter topic, and tells of no attempt', () => {
    const out = fail(retryRec({ 'x-original-topic': 'refunds' }), topology, retry, NOW) as Outgoing
    expect(out.topic).toBe('orders.dlq')
    expect(textsOf(out)).toMatchObject({
      'x-failure-reason': 'bad-envelope',
      'x-attempt': '1',
      'x-original-topic': 'orders',
    })
    expect(textsOf(out)).not.toHaveProperty('x-history')
  })

  it('keeps what a replay wrote on the retry and on the dead letter', () => {
    const replay = { 'x-replayed-from-dlq': 'true', 'x-replay-count': '2', 'x-replay-for-group': 'billing' }
    for (const rec of [
      recOf({ headers: headersOf(replay) }),
      retryRec(replay),
      retryRec({ ...replay, 'x-attempt': '4' }),
    ]) {
      expect(textsOf(fail(rec, topology, retry, NOW) as Outgoing)).toMatchObject(replay)
    }
    const forged = retryRec({ 'x-replay-count': '2', 'x-replay-for-group': 'billing' })
    expect(Object.keys(textsOf(fail(forged, topology, retry, NOW) as Outgoing)).join()).not.toContain('replay')
  })

  it('is slim where the record does not fit', () => {
    const rec = retryRec({ 'x-attempt': '4' })
    const opened = openRetry(rec, topology, NOW)
    if (opened.kind === 'skip') throw new Error('skipped')
    const decision = toDeadLetter({ ...opened, topology }, 'too-large')
    const texts = textsOf(composeCopy(rec, opened, decision, failure, 3, { slim: true }))
    for (const large of ['x-error', 'x-error-stack', 'x-history']) expect(texts).not.toHaveProperty(large)
    expect(texts).toMatchObject({ 'x-failure-reason': 'too-large', 'x-error-class': 'HttpError' })
  })

  it('R03: goes to a partition that exists, the same for a key', () => {
    const key = Buffer.from('k')
    const copyTo = (partitions: number) => {
      const rec = recOf({ key })
      const decision = toDeadLetter({ main: 'orders', attempt: 1, topology }, 'unclassified')
      return composeCopy(rec, openMain(rec, topology) as never, decision, failure, partitions).partition
    }
    expect([copyTo(6), copyTo(3), copyTo(2), copyTo(1)]).toEqual([2, 2, partitionForKey(key, 2), 0])
  })
})

describe('the whole way', () => {
  const messages = fc.record({ key: fc.option(bytes), value: fc.option(bytes), headers: anyHeaders })

  it('P3 P4 R50: any record, forged or not, ends on a dead letter topic as it was, within its attempts', () => {
    const starts = fc.tuple(topologies, messages, fc.nat(30), fc.array(fc.nat({ max: 20 * HOUR }), { maxLength: 10 }))
    fc.assert(
      fc.property(starts, ([topology, message, place, waits]) => {
        const start = topology.allTopics()[place % topology.allTopics().length]
        if (start === undefined || start.role === 'dead-letter') return
        let rec: Rec = recOf({ ...message, topic: start.topic, headers: fromKafkaHeaders(decoded(message.headers)) })
        let attempt = 0
        let now = NOW
        for (let steps = 0; topology.roleOf(rec.topic)?.role !== 'dead-letter'; steps++) {
          expect(steps).toBeLessThanOrEqual(topology.maxAttempts)
          const out = fail(rec, topology, { kind: 'retry', after: waits[steps] }, now)
          if (out === 'skipped') {
            expect(steps).toBe(0)
            return
          }
          const envelope = readEnvelope(out.headers)
          expect(topology.roleOf(out.topic)?.main).toBe(start.main)
          expect(envelope.problems).toEqual([])
          // It only rises; the dead letter tells the number made, which is the number that was announced.
          const dead = envelope.failureReason !== undefined
          if (steps > 0) expect(envelope.attempt).toBe(dead ? attempt : attempt + 1)
          const ours = out.headers.filter(([name]) => isOwnHeader(name))
          const size = ours.reduce((sum, [name, value]) => sum + name.length + (value?.length ?? 0) + 4, 0)
          expect(size).toBeLessThanOrEqual(OWN_HEADER_BUDGET)
          attempt = envelope.attempt ?? NaN
          now = envelope.dueAt ?? now
          rec = delivered(out, BigInt(steps), now)
        }
        expect(rec.key).toBe(message.key)
        expect(rec.value).toBe(message.value)
        const emptied = byName(message.headers.map(([name, value]): Header => [name, value ?? Buffer.alloc(0)]))
        const arrived = foreign(rec.headers)
        for (const [name, values] of emptied) if (!isOwnHeader(name)) expect(arrived.get(name)).toEqual(values)
      }),
      { numRuns: 300 },
    )
  })
})
