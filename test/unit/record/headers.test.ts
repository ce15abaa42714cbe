import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  allHeaders,
  firstHeader,
  fromKafkaHeaders,
  type Header,
  lastHeader,
  type Message,
  toKafkaHeaders,
  toMessageHeaders,
  toRec,
} from '../../../src/record'
import { byName, foreignHeaders } from './arbitrary'
import { decoded, throughKafkajs } from './kafkajs-wire'

const text = (value: string): Buffer => Buffer.from(value)

describe('headers from kafkajs', () => {
  it('P3 R74: reads every name and value that kafkajs decodes, inherited names and nulls too', () => {
    fc.assert(
      fc.property(foreignHeaders, (headers) => {
        expect(byName(fromKafkaHeaders(decoded(headers)))).toEqual(byName(headers))
      }),
    )
  })

  it('R74: is needed, since kafkajs decodes inherited names with a stranger in front', () => {
    const headers = decoded([
      ['constructor', text('a')],
      ['__proto__', text('b')],
    ])
    expect(headers.constructor).toEqual([Object, text('a')])
    expect(() => throughKafkajs(headers)).toThrow(TypeError)
    expect(fromKafkaHeaders(headers)).toEqual([
      ['constructor', text('a')],
      ['__proto__', text('b')],
    ])
  })

  it('keeps the own values of an array that is not from kafkajs', () => {
    expect(fromKafkaHeaders({ constructor: [text('a'), text('b')] })).toEqual([
      ['constructor', text('a')],
      ['constructor', text('b')],
    ])
  })

  it('turns text into bytes, keeps null, and takes undefined for no header', () => {
    const headers = fromKafkaHeaders({ a: 'ä', b: null, c: undefined, d: ['x', null, undefined], e: [] })
    expect(headers).toEqual([
      ['a', text('ä')],
      ['b', null],
      ['d', text('x')],
      ['d', null],
    ])
  })

  it('takes plain Uint8Arrays for bytes, and leaves out what Kafka cannot carry', () => {
    const odd = { a: new Uint8Array([1, 2]), b: 5, c: {}, d: () => 1, e: [true, text('x')] }
    expect(fromKafkaHeaders(odd as never)).toEqual([
      ['a', Buffer.from([1, 2])],
      ['e', text('x')],
    ])
  })

  it('ignores what the object inherits, and takes a missing object for no headers', () => {
    expect(fromKafkaHeaders(Object.create({ a: text('inherited') }))).toEqual([])
    expect(fromKafkaHeaders(undefined)).toEqual([])
    expect(fromKafkaHeaders(null)).toEqual([])
  })
})

describe('headers to kafkajs', () => {
  it('P3: come back through the encoder and decoder of kafkajs as they were, null as empty', () => {
    fc.assert(
      fc.property(foreignHeaders, (headers) => {
        const empty = headers.map(([name, value]): Header => [name, value ?? Buffer.alloc(0)])
        expect(byName(fromKafkaHeaders(throughKafkajs(toKafkaHeaders(headers))))).toEqual(byName(empty))
      }),
    )
  })

  it('R15: never gives kafkajs a value that it throws on', () => {
    const object = toKafkaHeaders([
      ['a', null],
      ['b', text('x')],
      ['b', null],
      ['__proto__', null],
    ])
    expect(Object.getPrototypeOf(object)).toBeNull()
    expect(Object.entries(object)).toEqual([
      ['a', Buffer.alloc(0)],
      ['b', [text('x'), Buffer.alloc(0)]],
      ['__proto__', Buffer.alloc(0)],
    ])
  })

  it('shows a handler the shape of kafkajs, with null for null', () => {
    fc.assert(
      fc.property(foreignHeaders, (headers) => {
        const object = toMessageHeaders(headers)
        expect(Object.getPrototypeOf(object)).toBe(Object.prototype)
        expect(byName(fromKafkaHeaders(object))).toEqual(byName(headers))
      }),
    )
  })
})

describe('lookup by name', () => {
  const headers: Header[] = [
    ['a', text('1')],
    ['b', null],
    ['a', text('2')],
  ]

  it('finds the first, the last and all', () => {
    expect(firstHeader(headers, 'a')).toEqual(text('1'))
    expect(lastHeader(headers, 'a')).toEqual(text('2'))
    expect(allHeaders(headers, 'a')).toEqual([text('1'), text('2')])
  })

  it('tells a null header from a missing one', () => {
    expect([firstHeader(headers, 'b'), lastHeader(headers, 'b')]).toEqual([null, null])
    expect([firstHeader(headers, 'c'), lastHeader(headers, 'c'), allHeaders(headers, 'c')]).toEqual([
      undefined,
      undefined,
      [],
    ])
  })
})

describe('toRec', () => {
  const message: Message = { key: null, value: text('v'), timestamp: '5', offset: '9007199254740993', attributes: 0 }

  it('P8: keeps an offset exact', () => {
    expect(toRec('t', 1, message)).toEqual({
      topic: 't',
      partition: 1,
      offset: 9007199254740993n,
      timestamp: 5,
      key: null,
      value: text('v'),
      headers: [],
    })
  })

  it('takes a timestamp that is not a whole number for none', () => {
    const timestamps = ['-1', '', 'abc', '1.5', 'Infinity'].map((timestamp) => toRec('t', 0, { ...message, timestamp }))
    expect(timestamps.map((rec) => rec.timestamp)).toEqual([-1, 0, -1, -1, -1])
  })
})
