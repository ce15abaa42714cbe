/** Which partition a copy goes to. Always from us, so that every try of a publish goes to the same one. */

const SEED = 0x9747b28c
const M = 0x5bd1e995

/** What decides the partition: the record's key, and where it first stood. */
export interface Placement {
  readonly key: Buffer | null
  readonly partition: number
  readonly offset: bigint
}

/**
 * The partition of a copy on a topic with `count` partitions (at least 1): the same number as the original's where there
 * is one; else as any producer would choose from the key; else, without a key, spread by original partition and offset.
 * The same record always gets the same partition.
 */
export function partitionOf({ key, partition, offset }: Placement, count: number): number {
  if (partition >= 0 && partition < count) return partition
  if (key !== null) return partitionForKey(key, count)
  const spread = (BigInt(Math.max(0, partition)) + offset) % BigInt(count)
  return Number(spread)
}

/** The partition that the Java client and kafkajs's default partitioner choose for a key. */
export function partitionForKey(key: Buffer, count: number): number {
  return (murmur2(key) & 0x7fffffff) % count
}

/** MurmurHash2 as Kafka uses it (seed 0x9747b28c, signed 32 bits); the numbers are those of the algorithm. */
export function murmur2(data: Buffer): number {
  const { length } = data
  const whole = length - (length % 4)
  let h = SEED ^ length
  for (let i = 0; i < whole; i += 4) {
    let k = Math.imul(data.readInt32LE(i), M)
    k ^= k >>> 24
    h = Math.imul(h, M) ^ Math.imul(k, M)
  }
  if (whole < length) {
    h ^= data.readUIntLE(whole, length - whole)
    h = Math.imul(h, M)
  }
  h ^= h >>> 13
  h = Math.imul(h, M)
  return h ^ (h >>> 15)
}
