import { createRequire } from 'node:module'
import fc from 'fast-check'
import { Partitioners } from 'kafkajs'
import { describe, expect, it } from 'vitest'
import { partitionForKey, partitionOf } from '../../../src/route'
import { murmur2 } from '../../../src/route/partition'

const kafkajsMurmur2 = createRequire(import.meta.url)('kafkajs/src/producer/partitioners/default/murmur2')
const key = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes))

describe('the partition for a key', () => {
  it('is the one that kafkajs chooses', () => {
    const partitioner = Partitioners.DefaultPartitioner()
    fc.assert(
      fc.property(key, fc.integer({ min: 1, max: 200 }), (bytes, count) => {
        const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({ partitionId, leader: 1 }))
        const args = { topic: 't', partitionMetadata, message: { key: bytes, value: null } }
        expect(partitionForKey(bytes, count)).toBe(partitioner(args as never))
      }),
    )
  })

  it('hashes as kafkajs does', () => {
    fc.assert(
      fc.property(key, (bytes) => void expect(murmur2(bytes)).toBe(kafkajsMurmur2(bytes))),
      { numRuns: 1000 },
    )
  })

  // From org.apache.kafka.common.utils.UtilsTest (testMurmur2).
  it.each([
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ])('hashes as Java does: %s', (text, hash) => {
    expect(murmur2(Buffer.from(text))).toBe(hash)
  })
})

describe('the partition of a copy', () => {
  const offset = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n })
  const anyKey = fc.option(key)

  it('R03 R04: exists, and is the same at every try', () => {
    fc.assert(
      fc.property(anyKey, fc.nat(), offset, fc.integer({ min: 1, max: 100 }), (bytes, partition, at, count) => {
        const chosen = partitionOf({ key: bytes, partition, offset: at }, count)
        expect(Number.isInteger(chosen) && chosen >= 0 && chosen < count).toBe(true)
        expect(partitionOf({ key: bytes, partition, offset: at }, count)).toBe(chosen)
      }),
    )
  })

  it('is that of the original where there is one of that number', () => {
    for (const bytes of [null, Buffer.from('k')]) {
      expect([0, 1, 2].map((partition) => partitionOf({ key: bytes, partition, offset: 7n }, 3))).toEqual([0, 1, 2])
    }
  })

  it('R03: follows the key where there are too few partitions, also an empty key', () => {
    for (const bytes of [Buffer.from('k'), Buffer.alloc(0)]) {
      const chosen = [5, 6, 7].map((partition) => partitionOf({ key: bytes, partition, offset: 7n }, 5))
      expect(chosen).toEqual(Array(3).fill(partitionForKey(bytes, 5)))
    }
  })

  it('spreads records without a key by where they stood', () => {
    const chosen = [0n, 1n, 2n, 3n].map((at) => partitionOf({ key: null, partition: 5, offset: at }, 3))
    expect(chosen).toEqual([2, 0, 1, 2])
    expect(partitionOf({ key: null, partition: 5, offset: 2n ** 63n - 1n }, 3)).toBe(0)
  })
})
