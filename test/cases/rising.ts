import { expect } from 'vitest'

/** What a broker was seen to hold as committed, by partition: never less than before. kafkajs's own resets are none of ours. */
export function expectRising(seen: Map<number, bigint[]>): void {
  for (const [partition, offsets] of seen) {
    const known = offsets.filter((offset) => offset >= 0n)
    expect(known, `committed on ${partition}`).toEqual([...known].sort((a, b) => (a < b ? -1 : 1)))
  }
}
