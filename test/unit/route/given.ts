import fc from 'fast-check'
import type { Header, Rec } from '../../../src/record'
import { buildTopology, type Topology, type TopologyInput } from '../../../src/topology'

export const SECOND = 1000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const NOW = Date.UTC(2024, 4, 1, 12)

export function topologyOf(more: Partial<TopologyInput> = {}): Topology {
  return buildTopology({
    topics: ['orders', 'refunds'],
    groupId: 'billing',
    delays: [MINUTE, 10 * MINUTE, HOUR],
    ...more,
  })
}

export function headersOf(texts: Record<string, string | null | undefined>): Header[] {
  return Object.entries(texts).flatMap(([name, text]) =>
    text === undefined ? [] : [[name, text === null ? null : Buffer.from(text)]],
  )
}

export function recOf(more: Partial<Rec> = {}): Rec {
  const value = Buffer.from('{"id":1}')
  return { topic: 'orders', partition: 2, offset: 40n, timestamp: NOW, key: null, value, headers: [], ...more }
}

/** A record as our own copy has it on `orders.retry.1m`, with some headers changed or (undefined) left out. */
export function retryRec(headers: Record<string, string | null | undefined> = {}, more: Partial<Rec> = {}): Rec {
  const envelope = headersOf({
    'x-attempt': '2',
    'x-due-at': String(NOW + MINUTE),
    'x-original-topic': 'orders',
    'x-original-partition': '7',
    'x-original-offset': '9007199254740993',
    'x-original-timestamp': String(NOW - HOUR),
    'x-consumer-group': 'billing',
    'x-first-failed-at': new Date(NOW).toISOString(),
    ...headers,
  })
  return recOf({ topic: 'orders.retry.1m', headers: envelope, ...more })
}

/** Any topology: up to 9 delays, jitter, deadline, another group's and former tiers. */
export const topologies: fc.Arbitrary<Topology> = fc
  .record({
    delays: fc.array(fc.integer({ min: 1, max: 10 * HOUR }), { maxLength: 9 }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    deadlineMs: fc.option(fc.integer({ min: 1, max: 10 * HOUR }), { nil: undefined }),
    formerTiers: fc.array(fc.record({ delayMs: fc.integer({ min: 1, max: HOUR }) }), { maxLength: 2 }),
    formerGroupIds: fc.constantFrom([], ['old']),
  })
  .map((more) => topologyOf(more))
