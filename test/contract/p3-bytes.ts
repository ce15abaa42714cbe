import { describe, expect, it } from 'vitest'
import { NonRetryableError, RetryableError } from '../../src'
import { isOwnHeader, OWN_HEADER_BUDGET } from '../../src/envelope'
import type { Given } from './promises'
import { header, headersNamed } from './scene'
import type { Bytes, StoredRecord, WireRecord } from './wire'

const FAILS = (): never => {
  throw new RetryableError('the shop is closed')
}
const BINARY = Buffer.from(Array.from({ length: 256 }, (_, n) => n))
const INVALID_UTF8 = Buffer.from([0xc3, 0x28, 0xff, 0xfe, 0x00])
/** As a schema registry writes it: magic byte, an id that nobody knows, bytes. */
const UNKNOWN_SCHEMA = Buffer.concat([Buffer.from([0, 0x7f, 0xff, 0xff, 0xff]), BINARY])

const ODD: readonly (readonly [name: string, record: WireRecord])[] = [
  ['nothing at all', {}],
  ['a tombstone with a key', { key: 'k', value: null }],
  ['an empty value and an empty key', { key: '', value: '' }],
  ['a null key', { key: null, value: 'v' }],
  ['every byte there is', { key: BINARY, value: BINARY, headers: [['b', BINARY]] }],
  ['R50 invalid UTF-8', { key: INVALID_UTF8, value: INVALID_UTF8, headers: [['bad', INVALID_UTF8]] }],
  ['R50 a schema nobody knows', { value: UNKNOWN_SCHEMA }],
  [
    'R15 null headers',
    {
      value: 'v',
      headers: [
        ['a', null],
        ['b', 'x'],
        ['b', null],
        ['c', ''],
        ['d', null],
        ['d', null],
      ],
    },
  ],
  [
    'a repeated header, in order',
    {
      value: 'v',
      headers: [
        ['r', '3'],
        ['r', '1'],
        ['s', '-'],
        ['r', '2'],
      ],
    },
  ],
  [
    'R74 names that every object has',
    {
      value: 'v',
      headers: [
        ['constructor', 'c'],
        ['__proto__', 'p'],
        ['toString', ''],
        ['hasOwnProperty', null],
        ['__proto__', 'q'],
      ],
    },
  ],
  [
    'odd names',
    {
      value: 'v',
      headers: [
        ['', 'no name'],
        ['0', 'zero'],
        ['10', 'ten'],
        ['naïve ☃', 'snow'],
        ['a b\n', 'space'],
      ],
    },
  ],
  [
    'R75 a trace',
    {
      value: 'v',
      headers: [
        ['traceparent', '00-af-b7-01'],
        ['tracestate', 'x=1'],
        ['b3', '1-2-1'],
      ],
    },
  ],
]

/** P3: what a record carries arrives as it was, at every retry and on the dead letter topic. */
export function bytesPromises(given: Given): void {
  describe('P3 bytes are sacred', () => {
    it('key, value and foreign headers are the same bytes on every tier and on the dead letter topic', async () => {
      const scene = await given.scene({ schedule: ['200ms', '400ms'] })
      await scene.join(FAILS, { ordering: 'unordered' })
      await scene.produce(ODD.map(([, record]) => record))
      await scene.untilDone()
      for (const topic of [scene.retry('200ms'), scene.retry('400ms'), scene.dlq]) {
        const copies = byOrigin(await given.stage().records(topic))
        for (const [i, [name, record]] of ODD.entries()) {
          const copy = copies.get(String(i))
          expect(copy && content(copy), `${name} on ${topic}`).toEqual(wanted(record))
        }
        expect(copies.size).toBe(ODD.length)
      }
      expect(scene.calls).toHaveLength(3 * ODD.length)
    })

    it('a handler finds the same at a retry as at the first attempt, null headers too', async () => {
      const scene = await given.scene()
      const seen = new Map<string, unknown[]>()
      await scene.join(({ payload, offset }) => {
        const { key, value, headers } = payload.message
        const foreign = Object.fromEntries(Object.entries(headers).filter(([name]) => !isOwnHeader(name)))
        seen.set(offset, [...(seen.get(offset) ?? []), { key, value, headers: withoutInherited(foreign) }])
        FAILS()
      })
      await scene.produce(ODD.map(([, record]) => record))
      await scene.untilDone()
      for (const [i, [name]] of ODD.entries()) {
        const [first, second] = seen.get(String(i)) ?? []
        expect(second, name).toEqual(first)
      }
    })

    it('topic, partition, offset and timestamp stay those of the first delivery', async () => {
      const scene = await given.scene({ partitions: 2 })
      const then = given.stage().now() - 3_600_000
      await scene.join(FAILS)
      await scene.produce([{ value: 'x' }, { value: 'old', timestamp: then }], 1)
      await scene.untilDone()
      const places = scene.calls
        .filter(({ value }) => value === 'old')
        .map(({ payload: { topic, partition, message } }) => [topic, partition, message.offset, message.timestamp])
      expect(places).toEqual([1, 2].map(() => [scene.topic, 1, '1', String(then)]))
    })

    it('R50: what cannot be decoded is dead-lettered as it is, without a handler call', async () => {
      const scene = await given.scene()
      await scene.join(undefined, { decode: 'json' })
      const values = [INVALID_UTF8, UNKNOWN_SCHEMA, Buffer.from('{"a":'), Buffer.from('')]
      await scene.produce(values.map((value) => ({ value })))
      await scene.untilDone()
      expect(scene.calls).toHaveLength(0)
      const dead = await scene.dead()
      expect(dead.map(({ value }) => value)).toEqual(values)
      expect(dead.map((one) => header(one, 'x-failure-reason'))).toEqual(values.map(() => 'undecodable'))
    })

    it('own headers are replaced, not appended: one of each, after any number of attempts', async () => {
      const scene = await given.scene({ schedule: ['200ms', '400ms'] })
      await scene.join(FAILS)
      const forged = [
        'x-attempt',
        'x-due-at',
        'x-error',
        'x-error',
        'x-history',
        'x-original-topic',
        'x-failure-reason',
      ]
      await scene.produce([{ value: 'v', headers: forged.map((name) => [name, 'theirs'] as const) }])
      await scene.untilDone()
      for (const topic of [scene.retry('200ms'), scene.retry('400ms'), scene.dlq]) {
        const [copy] = await given.stage().records(topic)
        const names = copy!.headers.map(([name]) => name).filter(isOwnHeader)
        expect(names).toEqual([...new Set(names)])
        expect(copy!.headers.filter(([, value]) => String(value) === 'theirs')).toEqual([])
      }
    })

    it('own headers are bounded, whatever an error says', async () => {
      const scene = await given.scene({ schedule: ['200ms', '400ms'] })
      await scene.join(() => {
        const error = new RetryableError('☃'.repeat(300_000))
        error.name = 'N'.repeat(100_000)
        error.stack = 'at '.repeat(300_000)
        throw error
      })
      await scene.produce([{ value: 'v' }])
      await scene.untilDone()
      const [dead] = await scene.dead()
      expect(ownBytes(dead!)).toBeLessThanOrEqual(OWN_HEADER_BUDGET)
      expect(JSON.parse(header(dead!, 'x-history')!)).toHaveLength(3)
    })

    it('R75: exactly one traceparent, and the same', async () => {
      const scene = await given.scene({ schedule: ['200ms', '400ms'] })
      await scene.join(({ attempt }) => {
        if (attempt === 3) throw new NonRetryableError('a bad order')
        FAILS()
      })
      await scene.produce([{ value: 'v', headers: [['traceparent', '00-af-b7-01']] }])
      await scene.untilDone()
      const [dead] = await scene.dead()
      expect(headersNamed(dead!, 'traceparent').map(String)).toEqual(['00-af-b7-01'])
    })
  })
}

const bytes = (value: Bytes | undefined): Buffer | null => (value == null ? null : Buffer.from(value as Buffer))

/** What a copy must hold: null headers as empty, since kafkajs cannot write null. By name: between names no order is kept. */
function wanted({ key, value, headers = [] }: WireRecord): unknown {
  return {
    key: bytes(key),
    value: bytes(value),
    headers: grouped(headers.map(([name, one]) => [name, bytes(one) ?? Buffer.alloc(0)])),
  }
}

function content({ key, value, headers }: StoredRecord): unknown {
  return { key, value, headers: grouped(headers.filter(([name]) => !isOwnHeader(name))) }
}

function grouped(headers: readonly (readonly [string, Buffer | null])[]): [string, (string | null)[]][] {
  const names = [...new Set(headers.map(([name]) => name))].sort()
  return names.map((name) => [
    name,
    headers.filter((one) => one[0] === name).map(([, value]) => value && value.toString('hex')),
  ])
}

function byOrigin(records: readonly StoredRecord[]): Map<string, StoredRecord> {
  return new Map(records.map((record) => [header(record, 'x-original-offset')!, record]))
}

/** kafkajs puts what an object inherits in front of a header of that name; on a retry it does not. */
function withoutInherited(headers: Record<string, unknown>): [string, unknown][] {
  const plain = {} as Record<string, unknown>
  return Object.entries(headers)
    .map(([name, value]): [string, unknown] => {
      if (!Array.isArray(value) || plain[name] === undefined || value[0] !== plain[name]) return [name, value]
      return [name, value.length === 2 ? value[1] : value.slice(1)]
    })
    .sort(([a], [b]) => (a < b ? -1 : 1))
}

function ownBytes({ headers }: Pick<StoredRecord, 'headers'>): number {
  return headers
    .filter(([name]) => isOwnHeader(name))
    .reduce((sum, [name, value]) => sum + name.length + (value?.length ?? 0) + 4, 0)
}
