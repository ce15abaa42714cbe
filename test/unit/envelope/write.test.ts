import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type EnvelopeFields,
  FAILURE_REASONS,
  isOwnHeader,
  OWN_HEADER_BUDGET,
  readEnvelope,
  restoreNullHeaders,
  slimFields,
  writeEnvelope,
  writeReplay,
} from '../../../src/envelope'
import { fromKafkaHeaders, type Header, toKafkaHeaders } from '../../../src/record'
import { anyHeaders, byName, foreignHeaders } from '../record/arbitrary'
import { decoded, throughKafkajs } from '../record/kafkajs-wire'

const text = fc.string({ unit: 'binary', maxLength: 40 })
const name = fc.string({ minLength: 1, maxLength: 20 })
const time = fc.nat({ max: 4_000_000_000_000 })
const option = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })

const fields: fc.Arbitrary<EnvelopeFields> = fc.record({
  attempt: fc.integer({ min: 1, max: 100 }),
  dueAt: option(time),
  original: fc.record({
    topic: fc.stringMatching(/^[a-z][a-zA-Z0-9._-]{0,20}$/),
    partition: fc.nat(),
    offset: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
    timestamp: fc.oneof(time, fc.constant(-1)),
  }),
  group: name,
  release: option(text),
  firstFailedAt: time,
  lastFailedAt: time,
  errorClass: text,
  error: option(text),
  history: fc.array(fc.record({ attempt: fc.nat(100), at: time, class: text, because: text, late: fc.nat() }), {
    maxLength: 10,
  }),
  errorStack: option(text),
  failureReason: option(fc.constantFrom(...FAILURE_REASONS)),
  replay: option(fc.record({ count: fc.integer({ min: 1, max: 1000 }), forGroup: option(name) })),
})

const hop = (headers: readonly Header[]): Header[] => fromKafkaHeaders(throughKafkajs(toKafkaHeaders(headers)))
const foreign = (headers: readonly Header[]) => byName(headers.filter(([header]) => !isOwnHeader(header)))
const ownBytes = (headers: readonly Header[]): number =>
  headers
    .filter(([header]) => isOwnHeader(header))
    .reduce((sum, [header, value]) => sum + Buffer.byteLength(header) + (value?.length ?? 0) + 4, 0)

describe('a copy', () => {
  it('P3 R15 R74: carries foreign headers through kafkajs at every hop as they first were', () => {
    fc.assert(
      fc.property(anyHeaders, fc.array(fields, { minLength: 1, maxLength: 4 }), (source, hops) => {
        let headers: readonly Header[] = fromKafkaHeaders(decoded(source))
        for (const envelope of hops) headers = restoreNullHeaders(hop(writeEnvelope(headers, envelope)))
        expect(foreign(headers)).toEqual(foreign(source))
      }),
    )
  })

  it('says what was written, and replaces what was there', () => {
    fc.assert(
      fc.property(anyHeaders, fields, (source, written) => {
        const read = readEnvelope(hop(writeEnvelope(source, written)))
        expect(read).toMatchObject({
          attempt: written.attempt,
          dueAt: written.dueAt,
          originalTopic: written.original.topic,
          originalPartition: written.original.partition,
          originalOffset: written.original.offset,
          originalTimestamp: written.original.timestamp,
          group: written.group,
          release: written.release,
          firstFailedAt: written.firstFailedAt,
          lastFailedAt: written.lastFailedAt,
          errorClass: written.errorClass,
          error: written.error,
          errorStack: written.errorStack,
          failureReason: written.failureReason,
          replayed: written.replay !== undefined,
          replayCount: written.replay?.count,
          replayForGroup: written.replay?.forGroup,
          problems: [],
        })
        expect(read.history).toHaveLength(written.history.length)
      }),
    )
  })

  it('R75: has exactly one of each trace header, unchanged, however often it is copied', () => {
    const trace: Header[] = ['traceparent', 'tracestate', 'b3'].map((header) => [
      header,
      Buffer.from(`${header}-value`),
    ])
    fc.assert(
      fc.property(fields, (envelope) => {
        let headers: readonly Header[] = trace
        for (let i = 0; i < 4; i++) headers = hop(writeEnvelope(headers, envelope))
        expect(headers.filter(([header]) => !isOwnHeader(header))).toEqual(trace)
      }),
    )
  })

  it('P3: adds no more than the budget, and does not grow from hop to hop', () => {
    const long = fc.oneof(text, fc.constantFrom('x'.repeat(100_000), '😀'.repeat(50_000), '\u0000'.repeat(50_000)))
    const large = fc.record({ errorClass: long, error: long, errorStack: long, release: long, because: long })
    fc.assert(
      fc.property(anyHeaders, fields, large, (source, base, { because, ...texts }) => {
        const entry = { attempt: 1, at: 5, class: texts.errorClass, because }
        const envelope = { ...base, ...texts, history: Array.from({ length: 30 }, () => entry) }
        const once = writeEnvelope(source, envelope)
        const twice = writeEnvelope(restoreNullHeaders(once), envelope)
        expect(ownBytes(once)).toBeLessThanOrEqual(OWN_HEADER_BUDGET)
        expect(ownBytes(twice)).toBe(ownBytes(once))
        expect(readEnvelope(once).problems).toEqual([])
      }),
    )
  })

  it('is slim without its large parts, and says where and why still', () => {
    fc.assert(
      fc.property(foreignHeaders, fields, (source, envelope) => {
        const slim = readEnvelope(writeEnvelope(source, slimFields(envelope)))
        expect(slim).toMatchObject({ error: undefined, errorStack: undefined, history: [], problems: [] })
        expect(slim).toMatchObject({ errorClass: envelope.errorClass, failureReason: envelope.failureReason })
      }),
    )
  })

  it('R15: survives what kafkajs reads and cannot write', () => {
    const source: Header[] = [
      ['a', null],
      ['b', Buffer.from('x')],
      ['b', null],
      ['c', Buffer.alloc(0)],
    ]
    const envelope = fc.sample(fields, { numRuns: 1, seed: 1 })[0] as EnvelopeFields
    const sent = writeEnvelope(source, envelope)
    expect(sent.find(([header]) => header === 'x-null-headers')?.[1]?.toString()).toBe('["a",["b",1]]')
    expect(foreign(restoreNullHeaders(hop(sent)))).toEqual(foreign(source))
  })
})

describe('a replay', () => {
  it('starts at 1 again, keeps where the record first stood, and ends the story of the failure', () => {
    fc.assert(
      fc.property(foreignHeaders, fields, (source, envelope) => {
        const dead = restoreNullHeaders(hop(writeEnvelope(source, envelope)))
        const replay = { count: 2, forGroup: 'billing' }
        const headers = hop(writeReplay(dead, envelope.original, replay))
        expect(foreign(restoreNullHeaders(headers))).toEqual(foreign(source))
        expect(readEnvelope(headers)).toMatchObject({
          attempt: 1,
          originalOffset: envelope.original.offset,
          replayed: true,
          replayCount: 2,
          replayForGroup: 'billing',
          firstFailedAt: undefined,
          error: undefined,
          errorStack: undefined,
          failureReason: undefined,
          history: [],
          problems: [],
        })
      }),
    )
  })

  it('is for every group where none is named', () => {
    const headers = writeReplay([], { topic: 't', partition: 0, offset: 0n, timestamp: 0 }, { count: 1 })
    expect(headers.map(([header]) => header)).not.toContain('x-replay-for-group')
  })
})
