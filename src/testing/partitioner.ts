/**
 * kafkajs's default partitioner: the message's own partition, else the hash of its key, else round robin. The round
 * begins at the first partition here, where kafkajs begins at a random one.
 */
import type { Partitioner } from './types'

const SEED = 0x9747b28c
const M = 0x5bd1e995

/** murmur2 as Kafka's own clients have it, in 32-bit arithmetic. */
export function murmur2(key: Buffer | string): number {
  const data = Buffer.isBuffer(key) ? key : Buffer.from(String(key))
  const whole = data.length & ~3
  let h = SEED ^ data.length
  for (let i = 0; i < whole; i += 4) {
    let k = data.readInt32LE(i)
    k = Math.imul(k, M)
    k ^= k >>> 24
    h = Math.imul(h, M) ^ Math.imul(k, M)
  }
  const tail = data.subarray(whole)
  if (tail.length > 2) h ^= (tail[2] ?? 0) << 16
  if (tail.length > 1) h ^= (tail[1] ?? 0) << 8
  if (tail.length > 0) h = Math.imul(h ^ (tail[0] ?? 0), M)
  h ^= h >>> 13
  h = Math.imul(h, M)
  return h ^ (h >>> 15)
}

export const createDefaultPartitioner = (): Partitioner => {
  const counters = new Map<string, number>()
  return ({ topic, partitionMetadata, message }) => {
    if (message.partition != null) return message.partition
    if (message.key != null) return (murmur2(message.key) & 0x7fffffff) % partitionMetadata.length
    const count = counters.get(topic) ?? 0
    counters.set(topic, count + 1)
    return partitionMetadata[count % partitionMetadata.length]?.partitionId ?? 0
  }
}
