/** Reads LZ4 frames as Kafka's brokers and Java clients write them: what a codec package does for kafkajs, for one test. */

const MAGIC = 0x184d2204
const HAS_CONTENT_SIZE = 0x08
const HAS_BLOCK_CHECKSUM = 0x10
const IS_UNCOMPRESSED = 0x80000000
const SHORTEST_MATCH = 4
/** A length of 15 in a token goes on in the bytes that follow, until one is below 255. */
const GOES_ON = 15

export function readLz4(frame: Buffer): Buffer {
  if (frame.readUInt32LE(0) !== MAGIC) throw new Error('not an LZ4 frame')
  const flags = frame[4] ?? 0
  let at = 7 + ((flags & HAS_CONTENT_SIZE) === 0 ? 0 : 8)
  const blocks: Buffer[] = []
  for (;;) {
    const word = frame.readUInt32LE(at)
    at += 4
    if (word === 0) return Buffer.concat(blocks)
    const size = (word & ~IS_UNCOMPRESSED) >>> 0
    const block = frame.subarray(at, at + size)
    blocks.push(word >= IS_UNCOMPRESSED ? block : readBlock(block))
    at += size + ((flags & HAS_BLOCK_CHECKSUM) === 0 ? 0 : 4)
  }
}

function readBlock(block: Buffer): Buffer {
  const out: number[] = []
  let at = 0
  const longer = (length: number): number => {
    if (length < GOES_ON) return length
    for (;;) {
      const more = block[at++] ?? 0
      length += more
      if (more < 255) return length
    }
  }
  while (at < block.length) {
    const token = block[at++] ?? 0
    const literals = longer(token >> 4)
    out.push(...block.subarray(at, at + literals))
    at += literals
    if (at >= block.length) break
    const from = out.length - block.readUInt16LE(at)
    at += 2
    const length = longer(token & 0x0f) + SHORTEST_MATCH
    // A match may run into what it writes itself.
    for (let i = 0; i < length; i++) out.push(out[from + i] ?? 0)
  }
  return Buffer.from(out)
}
