/**
 * What kafkajs leaves out of a batch for a reader of committed records: `consumer/filterAbortedMessages.js`.
 *
 * It goes by the list of aborted transactions, of which it looks at the first one alone, and takes a record for the
 * end of one by its key. So, as there: what has a key of four zero bytes ends the filtering, and what is listed behind
 * a transaction that began later is delivered until that one begins.
 */
import type { StoredRecord } from './log'
import type { AbortedTransaction } from './producer-states'

const ABORT = Buffer.alloc(4)

export function withoutAborted(
  records: readonly StoredRecord[],
  aborted: readonly AbortedTransaction[],
): readonly StoredRecord[] {
  if (aborted.length === 0) return records
  const ahead = [...aborted]
  const inside = new Set<bigint>()
  return records.filter(({ offset, key, batch }) => {
    const [next] = ahead
    if (next !== undefined && offset >= next.firstOffset) {
      ahead.shift()
      inside.add(next.producerId)
    }
    const { producerId, transactional } = batch.by
    if (key?.equals(ABORT)) {
      inside.delete(producerId)
      return true
    }
    return !(inside.has(producerId) && transactional)
  })
}
