/** The checksum of record batches (Castagnoli). Node brings only the other one. */
const POLYNOMIAL = 0x82f63b78
const table = Int32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ POLYNOMIAL : rest >>> 1
  return rest
})

/** Of the bytes in [from, to). */
export function crc32c(bytes: Uint8Array, from: number, to: number): number {
  let crc = -1
  for (let i = from; i < to; i++) crc = table[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8)
  return (crc ^ -1) >>> 0
}
