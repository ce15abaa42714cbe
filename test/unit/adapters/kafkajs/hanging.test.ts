import { expect, test } from 'vitest'
import { endHanging, isHanging, lastEnd } from '../../../../src/adapters/kafkajs/hanging'
import { int32, NO_TAGS, text, varint } from '../../../../src/adapters/kafkajs/raw-request'
import type { CoordinatorsLike } from '../../../../src/adapters/kafkajs/stable-offsets'

const OFFSET = { groupId: 'billing', topic: 'orders', partition: 3 }
const int16 = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff])

/** A cluster with one coordinator for everything, which answers each request with these bytes. */
function clusterWith(answer: Buffer, asked: object[] = []): CoordinatorsLike {
  return {
    findGroupCoordinator: async (whose) => {
      asked.push(whose)
      return {
        versions: { 9: { maxVersion: 9 }, 65: { maxVersion: 0 } },
        connectionPool: { send: async ({ response }) => response.parse(await response.decode(answer)) },
      }
    },
  }
}
const described = (state: string, error = 0): Buffer =>
  Buffer.concat([NO_TAGS, int32(0), varint(2), int16(error), text('billing/orders/3'), text(state)])
const fetched = (partitionError: number, error = 0): Buffer =>
  Buffer.concat([
    ...[NO_TAGS, int32(0), varint(2), text('orders'), varint(2), int32(3), Buffer.alloc(8, 0xff), int32(-1), text('')],
    ...[int16(partitionError), NO_TAGS, NO_TAGS, int16(error), NO_TAGS],
  ])

test.each([
  ['PrepareCommit', 'committed'],
  ['CompleteCommit', 'committed'],
  ['Ongoing', 'aborted'],
  ['PrepareAbort', 'aborted'],
  ['CompleteAbort', 'aborted'],
  ['Empty', undefined],
  ['of a Kafka to come', undefined],
])('a transaction whose coordinator says %s: %s', async (state, end) => {
  const asked: object[] = []
  expect(await lastEnd(clusterWith(described(state), asked), 'billing/orders/3')).toBe(end)
  expect(asked).toEqual([{ groupId: 'billing/orders/3', coordinatorType: 1 }])
})

test('an id that nobody knows, or that may not be asked of, and a client that cannot ask: unknown', async () => {
  expect(await lastEnd(clusterWith(described('CompleteCommit', 105)), 'billing/orders/3')).toBeUndefined()
  expect(await lastEnd(undefined, 'billing/orders/3')).toBeUndefined()
  expect(await lastEnd({}, 'billing/orders/3')).toBeUndefined()
})

test('an offset hangs where it is unstable, and not where something else is wrong', async () => {
  expect(await isHanging(clusterWith(fetched(88)), OFFSET)).toBe(true)
  expect(await isHanging(clusterWith(fetched(0)), OFFSET)).toBe(false)
  expect(await isHanging(clusterWith(fetched(29)), OFFSET)).toBe(false)
  expect(await isHanging({}, OFFSET)).toBe(false)
})

test.each([14, 15, 16])('nothing is said of it while the coordinator is not there (%i)', async (error) => {
  await expect(isHanging(clusterWith(fetched(0, error)), OFFSET)).rejects.toThrow("coordinator of 'billing'")
})

test.each(['committed', 'aborted'] as const)('it ends as the transaction did: %s', async (end) => {
  const told: unknown[] = []
  const transaction = {
    sendBatch: async () => [],
    sendOffsets: async (offsets: object) => void told.push(offsets),
    commit: async () => void told.push('committed'),
    abort: async () => void told.push('aborted'),
  }
  await endHanging(transaction, 'billing', end)
  expect(told).toEqual([{ consumerGroupId: 'billing', topics: [] }, end])
})
