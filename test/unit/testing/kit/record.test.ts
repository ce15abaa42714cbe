import { describe, expect, it } from 'vitest'
import { attempt, createFakeKafka, record } from '../../../../src/testing'

const text = (bytes: Buffer | null | undefined) => bytes?.toString('latin1') ?? bytes

describe('record()', () => {
  it('makes JSON of objects and lists, and takes text and bytes as they are', () => {
    const values = [
      { total: 42, items: [null, 'é'] },
      [1, 2],
      '{"total":',
      '',
      Buffer.from([0, 255]),
      new Uint8Array([1]),
    ]
    expect(values.map((value) => record({ value }).value)).toEqual([
      Buffer.from('{"total":42,"items":[null,"é"]}'),
      Buffer.from('[1,2]'),
      Buffer.from('{"total":'),
      Buffer.from(''),
      Buffer.from([0, 255]),
      Buffer.from([1]),
    ])
    expect(record({ value: new Date(0) }).value?.toString()).toBe('"1970-01-01T00:00:00.000Z"')
  })

  it('makes a tombstone of null, and has no key where none is given', () => {
    expect(record({ value: null })).toEqual({ key: null, value: null, headers: [] })
  })

  it('takes null headers, repeated ones, and pairs in their order', () => {
    expect(
      record({ value: '', headers: { a: null, b: ['1', null, Buffer.from('2')], __proto__x: 'y' } }).headers,
    ).toEqual([
      ['a', null],
      ['b', Buffer.from('1')],
      ['b', null],
      ['b', Buffer.from('2')],
      ['__proto__x', Buffer.from('y')],
    ])
    const pairs = [['b', '1'], ['a', null], ['b', '2'], ['__proto__', '']] as const // prettier-ignore
    expect(record({ value: '', headers: pairs }).headers.map(([name, value]) => [name, text(value)])).toEqual(pairs)
  })

  it('keeps its own bytes', () => {
    const value = Buffer.from('before')
    const made = record({ value, key: value, headers: { h: value } })
    value.write('AFTER ')
    expect([made.value, made.key, made.headers[0]?.[1]].map(text)).toEqual(['before', 'before', 'before'])
  })

  it('has a place only where one is given', () => {
    const at = new Date(1_700_000_000_123)
    const made = record({ value: '', topic: 'orders', partition: 2, offset: 17, timestamp: at })
    expect(made).toMatchObject({ topic: 'orders', partition: 2, offset: 17n, timestamp: 1_700_000_000_123 })
    expect(record({ value: '', offset: '9223372036854775807', timestamp: '5' })).toMatchObject({
      offset: 9_223_372_036_854_775_807n,
      timestamp: 5,
    })
  })

  it('may be produced, and attempted', async () => {
    const kafka = createFakeKafka({ topics: { orders: 3 } })
    const made = record({
      key: 'k',
      value: { total: 1 },
      headers: { a: ['x', null] },
      topic: 'orders',
      partition: 1,
      offset: 0n,
    })
    expect(kafka.produce('orders', made)).toEqual({ partition: 1, offset: 0n })
    expect(kafka.records('orders')).toMatchObject([
      { partition: 1, key: made.key, value: made.value, headers: made.headers },
    ])
    expect(await attempt(() => undefined, made)).toMatchObject({ outcome: 'succeeded', calls: 1 })
  })
})

/** What a test in JavaScript may give. */
const WRONG: [what: string, spec: unknown, says: RegExp][] = [
  ['no record', undefined, /the record is undefined; give an object/],
  ['text', 'x', /the record is 'x'; give an object/],
  ['a list', [], /the record is a list of 0; give an object/],
  ['a Buffer', Buffer.from('x'), /the record is 1 bytes; give an object/],
  [
    'a field that is none',
    { value: '', headrs: {} },
    /headrs is an empty object; a record has only value, key, headers/,
  ],
  ['a value that is a number', { value: 42 }, /value is 42; give/],
  ['a value that is true', { value: true }, /value is true; give/],
  ['a value that is a function', { value: () => 1 }, /value is a function; give/],
  ['a value that is a symbol', { value: Symbol('x') }, /value is Symbol\(x\); give/],
  ['a value that is a bigint', { value: 1n }, /value is 1n; give/],
  ['a key that is a number', { value: '', key: 17 }, /key is 17; give text, a Buffer or null/],
  ['a key that is an object', { value: '', key: { id: 1 } }, /key is an object with id; give text/],
  ['headers that are text', { value: '', headers: 'x' }, /headers is 'x'; give \{ name/],
  [
    'a header that is a number',
    { value: '', headers: { tries: 3 } },
    /header tries is 3; give text, .*; a number as text/,
  ],
  ['a header that is undefined', { value: '', headers: { a: undefined } }, /header a is undefined; give text/],
  ['a header that is no pair', { value: '', headers: ['a'] }, /a header is 'a'; give \{ name/],
  ['a header with a bad value in a list', { value: '', headers: { a: ['x', 1] } }, /header a is 1; give text/],
  ['a partition below 0', { value: '', partition: -1 }, /partition is -1; give a whole number from 0/],
  ['a partition that is text', { value: '', partition: '1' }, /partition is '1'; give a whole number/],
  ['an offset below 0', { value: '', offset: -1n }, /offset is -1n; give a bigint from 0n/],
  ['an offset that is not exact', { value: '', offset: 2 ** 60 }, /offset is 1152921504606847000; give a bigint/],
  ['a timestamp that is no time', { value: '', timestamp: new Date(NaN) }, /timestamp is a Date; give a Date, or ms/],
  ['a timestamp that is words', { value: '', timestamp: 'today' }, /timestamp is 'today'; give a Date, or ms/],
  ['a topic that is none', { value: '', topic: '' }, /topic is ''; give the name of a topic/],
]

describe('what is no record is refused, with field, value and mend', () => {
  it.each(WRONG)('by record(): %s', (_, spec, says) => {
    expect(() => record(spec as never)).toThrow(expect.objectContaining({ code: 'RETRYLINE_TESTING' }))
    expect(() => record(spec as never)).toThrow(says)
    expect(() => record(spec as never)).toThrow(/^record\(\): /)
  })

  it.each(WRONG)('by kafka.produce(): %s', (_, spec, says) => {
    const kafka = createFakeKafka({ topics: { orders: 1 } })
    expect(() => kafka.produce('orders', spec as never)).toThrow(says)
    expect(() => kafka.produce('orders', spec as never)).toThrow(/^kafka\.produce\(\): /)
    expect(kafka.records('orders')).toEqual([])
  })

  it.each(WRONG)('by attempt(): %s', async (_, spec, says) => {
    await expect(attempt(() => undefined, spec as never)).rejects.toThrow(says)
  })

  it.each<[string, unknown, RegExp]>([
    ['left out', {}, /value is undefined; give an object or a list .*null for a tombstone/],
    ['a Map', { value: new Map() }, /value is a Map; give/],
    ['a Set', { value: new Set() }, /value is a Set; give/],
    ['a promise', { value: Promise.resolve(1) }, /value is a Promise; await it; give/],
    ['an Error', { value: new Error('x') }, /value is an Error; give/],
    [
      'with a bigint inside',
      { value: { id: 1n } },
      /value is an object with id; it cannot become JSON \(TypeError.*BigInt/,
    ],
    ['with nothing to say as JSON', { value: { toJSON: () => undefined } }, /its toJSON\(\) gives nothing/],
  ])('by record(): a value %s', (_, spec, says) => {
    expect(() => record(spec as never)).toThrow(says)
  })

  it('by record(): a value that goes round in circles', () => {
    const value: Record<string, unknown> = {}
    value.self = value
    expect(() => record({ value })).toThrow(
      /value is an object with self; it cannot become JSON \(TypeError: .*circular/,
    )
  })

  it('by kafka.produce(): an object as value, which only record() makes JSON of', () => {
    const kafka = createFakeKafka({ topics: { orders: 1 } })
    expect(() => kafka.produce('orders', { value: { total: 1 } as never })).toThrow(
      /value is an object with total; give text.*record\(/,
    )
    // A value that is left out is a tombstone, as for any producer.
    expect(kafka.produce('orders', {})).toEqual({ partition: 0, offset: 0n })
  })

  it('by kafka.produce(): another topic, an offset that is not the next, a topic that is not there', () => {
    const kafka = createFakeKafka({ topics: { orders: 1, bills: 1 } })
    expect(() => kafka.produce('bills', record({ value: '', topic: 'orders' }))).toThrow(
      /topic is 'orders' in the record; produce it to that/,
    )
    expect(() => kafka.produce('orders', record({ value: '', offset: 5n }))).toThrow(
      /offset is 5n; the next of orders\/0 is 0n/,
    )
    for (const topic of ['order', undefined, 42, {}]) {
      expect(() => kafka.produce(topic as string, { value: '' })).toThrow(
        /on the fake broker; topics .* orders \(1\), bills \(1\)/,
      )
    }
  })
})
