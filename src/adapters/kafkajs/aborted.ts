/**
 * Leaves the records of aborted transactions out of the answer to a fetch.
 *
 * kafkajs goes by the broker's list of them, of which it looks at the first alone and takes at most one up for each record: where
 * the transactions of two producers overlap in a partition, records of an aborted one are delivered (seen on a real broker: what
 * eight handlers had sent stood twice). It also takes any record whose key is four zero bytes for the end of a transaction.
 *
 * What is to be left out is marked as a control record, which kafkajs hands to nobody, and still counts as read; and the list is
 * emptied, so that kafkajs judges nothing by it.
 */
import type { FetchAnswer } from './kafkajs-like'

/** Kafka's number in the key of a control record: version, then type, both of 16 bits. */
const ABORT = 0

interface Message {
  readonly offset: string
  readonly key: Buffer | null
  isControlRecord?: boolean
  readonly batchContext?: { readonly producerId: string; readonly inTransaction: boolean }
}
interface PartitionAnswer {
  abortedTransactions?: readonly { readonly producerId: string; readonly firstOffset: string }[] | null
  readonly messages?: readonly Message[]
}

export function withoutAborted(answer: FetchAnswer): FetchAnswer {
  for (const response of answer.responses as { partitions?: PartitionAnswer[] }[])
    for (const partition of response.partitions ?? []) leaveOut(partition)
  return answer
}

function leaveOut(partition: PartitionAnswer): void {
  const { abortedTransactions: listed, messages = [] } = partition
  if (listed === undefined || listed === null || listed.length === 0) return
  partition.abortedTransactions = []
  const ahead = listed
    .map(({ producerId, firstOffset }) => ({ producerId, from: BigInt(firstOffset) }))
    .sort((a, b) => (a.from < b.from ? -1 : 1))
  const inside = new Set<string>()
  let next = 0
  for (const message of messages) {
    const offset = BigInt(message.offset)
    for (; next < ahead.length && ahead[next]!.from <= offset; next++) inside.add(ahead[next]!.producerId)
    const { producerId, inTransaction } = message.batchContext ?? {}
    if (producerId === undefined || !inside.has(producerId)) continue
    if (message.isControlRecord === true) {
      if (message.key?.readInt16BE(2) === ABORT) inside.delete(producerId)
    } else if (inTransaction === true) message.isControlRecord = true
  }
}
