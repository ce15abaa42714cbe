import { expect, test } from 'vitest'
import { changedBytes } from './bytes'
import type { Standing } from './reader'

const MAIN: Standing = {
  topic: 'orders',
  at: 'orders/0@3',
  key: Buffer.from('k'),
  value: Buffer.from([0xff, 0x00]),
  headers: { a: [Buffer.from('1'), Buffer.from('2')], b: Buffer.from('3'), 'x-attempt': Buffer.from('theirs') },
}
const COPY: Standing = {
  ...MAIN,
  topic: 'orders.dlq',
  at: 'orders.dlq/0@0',
  headers: {
    b: Buffer.from('3'),
    a: [Buffer.from('1'), Buffer.from('2')],
    'x-attempt': Buffer.from('3'),
    'x-original-topic': Buffer.from('orders'),
    'x-original-partition': Buffer.from('0'),
    'x-original-offset': Buffer.from('3'),
  },
}

test('a copy with the same key, value and foreign headers is none to tell of', () => {
  expect(changedBytes([MAIN], [COPY])).toEqual([])
})

test.each<[string, Partial<Standing>]>([
  ['another key', { key: null }],
  ['another value', { value: Buffer.from([0xff]) }],
  ['a null value', { value: null }],
  ['a header less', { headers: { ...COPY.headers, b: undefined } }],
  ['values of a header in another order', { headers: { ...COPY.headers, a: [Buffer.from('2'), Buffer.from('1')] } }],
  ['a header more', { headers: { ...COPY.headers, c: Buffer.from('') } }],
])('%s is told, with both places', (_, change) => {
  expect(changedBytes([MAIN], [{ ...COPY, ...change }])).toEqual([
    'other bytes: orders.dlq/0@0 is not what orders/0@3 was',
  ])
})

test('what says that it is of another topic is of no record here', () => {
  const headers = { ...COPY.headers, 'x-original-topic': Buffer.from('payroll') }
  expect(changedBytes([MAIN], [{ ...COPY, key: null, headers }])).toEqual([])
})
