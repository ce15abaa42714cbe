import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { withoutAborted } from '../../../../src/adapters/kafkajs/aborted'

// kafkajs's own batch, as it makes it of an answer.
const Batch = createRequire(import.meta.url)('kafkajs/src/consumer/batch') as new (
  topic: string,
  fetchedOffset: string,
  partition: object,
) => { readonly messages: { readonly offset: string }[]; lastOffset(): string }

const marker = (offset: number, producerId: string, type: 'abort' | 'commit'): object => ({
  offset: String(offset),
  key: Buffer.from([0, 0, 0, type === 'abort' ? 0 : 1]),
  isControlRecord: true,
  batchContext: { producerId, inTransaction: true },
})
const record = (offset: number, producerId: string, key: Buffer | null = null): object => ({
  offset: String(offset),
  key,
  isControlRecord: false,
  batchContext: { producerId, inTransaction: producerId !== '-1' },
})

interface Answered {
  readonly from: number
  readonly messages: readonly object[]
  readonly aborted?: readonly (readonly [producerId: string, firstOffset: number])[] | null
}
function partition({ messages, aborted = null }: Answered): object {
  const abortedTransactions = aborted?.map(([producerId, from]) => ({ producerId, firstOffset: String(from) })) ?? null
  return { partition: 0, highWatermark: '100', abortedTransactions, messages }
}
function read(answered: Answered, ours: boolean): { offsets: number[]; last: string } {
  const one = partition(answered)
  if (ours) withoutAborted({ responses: [{ topicName: 't', partitions: [one] }] })
  const batch = new Batch('t', String(answered.from), one)
  return { offsets: batch.messages.map(({ offset }) => Number(offset)), last: batch.lastOffset() }
}

test.each<[string, Answered, number[]]>([
  [
    'two that overlap, told in the order of their ends',
    {
      from: 0,
      messages: [record(0, '7'), record(1, '8'), marker(2, '8', 'abort'), record(3, '7'), marker(4, '7', 'abort')],
      aborted: [
        ['8', 1],
        ['7', 0],
      ],
    },
    [],
  ],
  [
    'two that had begun before the fetch',
    {
      from: 10,
      messages: [record(10, '8'), record(11, '7'), marker(12, '7', 'abort'), marker(13, '8', 'abort')],
      aborted: [
        ['7', 3],
        ['8', 5],
      ],
    },
    [],
  ],
  [
    'one beside a record whose key looks like the end of a transaction',
    {
      from: 0,
      messages: [record(0, '7', Buffer.alloc(4)), record(1, '7'), marker(2, '7', 'abort'), record(3, '-1')],
      aborted: [['7', 0]],
    },
    [3],
  ],
])('%s: kafkajs delivers of it, we do not', (_, answered, offsets) => {
  expect(read(answered, false).offsets).not.toEqual(offsets)
  expect(read(answered, true).offsets).toEqual(offsets)
})

test('what is committed, plain, or of the next transaction of the same producer is delivered', () => {
  const messages = [
    record(0, '7'),
    record(1, '8'),
    record(2, '-1'),
    marker(3, '8', 'commit'),
    marker(4, '7', 'abort'),
    record(5, '7'),
    marker(6, '7', 'commit'),
    record(7, '9'),
  ]
  expect(read({ from: 0, messages, aborted: [['7', 0]] }, true)).toEqual({ offsets: [1, 2, 5, 7], last: '7' })
})

test('a batch of which nothing is left ends where it ended', () => {
  const all = { from: 4, messages: [record(4, '7'), record(5, '7')], aborted: [['7', 4]] as const }
  expect(read(all, true)).toEqual({ offsets: [], last: '5' })
  expect(read(all, true)).toEqual(read({ ...all, messages: [record(4, '7'), record(5, '7')] }, false))
})

test.each([null, []])('without aborted ones (%j) an answer stays as it is', (aborted) => {
  const one = { from: 0, messages: [record(0, '7', Buffer.alloc(4)), marker(1, '7', 'commit')], aborted }
  const answer = { responses: [{ partitions: [partition(one)] }, {}] }
  expect(withoutAborted(structuredClone(answer))).toEqual(structuredClone(answer))
})
