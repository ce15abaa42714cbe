import type { Header } from '../record'

/** What a record takes in a log beyond key, value and headers: lengths, deltas, attributes; rounded up. Bytes. */
const FRAME = 64

/** About how many bytes a record takes on the wire, uncompressed; never less. */
export function sizeOf(record: {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly Header[]
}): number {
  let size = FRAME + (record.key?.length ?? 0) + (record.value?.length ?? 0)
  for (const [name, value] of record.headers) size += 10 + name.length * 3 + (value?.length ?? 0)
  return size
}
