/**
 * Offsets of a transaction that is over, and of which the coordinator of the group was never told so: it answers that they are
 * unstable, for ever, and nobody can begin the partition.
 *
 * Seen on Kafka 4.4 that is shut down in good order: the log of transactions says PrepareCommit and then CompleteCommit, and the
 * offsets' log has no marker in between. A marker ends all that is pending under its producer id, so the next transaction of
 * the same id that takes part in the group's offsets makes up for the lost one, if it ends as that one did. How that was is
 * told by the coordinator of transactions, and only until the id is taken over: where nobody knows it any more, what is pending
 * is aborted, so that records are handled again and none is lost.
 */
import { RetrylineError } from '../../errors'
import type { TopicPartition } from '../../ports'
import type { TransactionLike } from './kafkajs-like'
import { askBroker, NO_TAGS, Reader, text, varint, type Api } from './raw-request'
import { askOnce, NOT_THERE, UNSTABLE_OFFSET_COMMIT, type CoordinatorsLike } from './stable-offsets'

/** A group's offset, which the transactions of one id move. */
export interface OffsetOf extends TopicPartition {
  readonly groupId: string
}

const TRANSACTION_COORDINATOR = 1

export type End = 'committed' | 'aborted'
/** `Empty`, which it is when it was taken over and not used since, tells of no end; what is open the next owner aborts. */
const ENDS: Readonly<Record<string, End>> = {
  PrepareCommit: 'committed',
  CompleteCommit: 'committed',
  Ongoing: 'aborted',
  PrepareAbort: 'aborted',
  CompleteAbort: 'aborted',
}

const DESCRIBE_TRANSACTIONS: Api<string | null> = {
  key: 65,
  version: 0,
  name: 'DescribeTransactions',
  decode(payload) {
    const read = new Reader(payload)
    read.tags()
    read.int32() // throttle time
    if (read.varint() - 1 < 1 || read.int16() !== 0) return null
    read.text() // the id
    return read.text()
  },
}

/** How the last transaction of an id has ended, asked before the id is taken over; undefined where that cannot be told. */
export async function lastEnd(cluster: CoordinatorsLike | undefined, id: string): Promise<End | undefined> {
  const coordinator = await cluster?.findGroupCoordinator?.({ groupId: id, coordinatorType: TRANSACTION_COORDINATOR })
  const body = Buffer.concat([NO_TAGS, varint(2), text(id), NO_TAGS])
  return coordinator && ENDS[(await askBroker(coordinator, DESCRIBE_TRANSACTIONS, body)) ?? '']
}

/**
 * Asked once the id is taken over: nothing of it can be on its way to an end any more, but before Kafka 4 for a moment. Rejects
 * while the group's coordinator is not there.
 */
export async function isHanging(cluster: CoordinatorsLike | undefined, offset: OffsetOf): Promise<boolean> {
  const answer = await askOnce(cluster, offset.groupId, [{ topic: offset.topic, partition: offset.partition }])
  if (answer === undefined) return false
  if (NOT_THERE.has(answer.errorCode))
    throw new RetrylineError(
      'RETRYLINE_CONNECT',
      `the coordinator of '${offset.groupId}' is not there (${answer.errorCode})`,
    )
  return answer.offsets.some(({ errorCode }) => errorCode === UNSTABLE_OFFSET_COMMIT)
}

/** Has the group's coordinator told of an end, by a transaction that takes part in the group's offsets and moves none. */
export async function endHanging(transaction: TransactionLike, groupId: string, end: End): Promise<void> {
  await transaction.sendOffsets({ consumerGroupId: groupId, topics: [] })
  await (end === 'committed' ? transaction.commit() : transaction.abort())
}
