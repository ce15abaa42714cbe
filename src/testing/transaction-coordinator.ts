/**
 * The broker's side of transactions, one for each transactional id.
 *
 * (an id is asked for) -> Empty -> (a partition or a group joins) -> Ongoing -> (its end, a new owner of the
 * transactional id, its time-out) -> PrepareCommit or PrepareAbort -> (markers on all partitions) -> Complete...
 * A new owner and a time-out raise the epoch, which refuses all that the old owner still asks for. Until the markers
 * stand, who asks is told CONCURRENT_TRANSACTIONS. Markers come at once, unless a test holds them.
 *
 * Must never happen: markers of both kinds for one transaction; an offset of an aborted one committed.
 */
import type { Timer } from '../ports'
import type { InnerClock } from './clock'
import type { ProtocolErrorType } from './error-codes'
import { protocolError } from './errors'
import type { Faults } from './faults'
import type { GroupCoordinator } from './group-coordinator'
import type { CommitTopic } from './group-offsets'
import type { TopicStore } from './topics'
import type { TopicPartitions } from './types'

export type TransactionState =
  'Empty' | 'Ongoing' | 'PrepareCommit' | 'PrepareAbort' | 'CompleteCommit' | 'CompleteAbort'

/** A transactional id as the broker knows it. */
export interface TransactionView {
  readonly state: TransactionState
  readonly producerId: bigint
  readonly epoch: number
  /** Of the open transaction. */
  readonly partitions: TopicPartitions[]
  readonly groups: string[]
}

interface Transaction {
  readonly id: string
  readonly producerId: bigint
  epoch: number
  state: TransactionState
  timeout: number
  readonly partitions: Map<string, Set<number>>
  readonly groups: Set<string>
  timer: Timer | undefined
}

/** `transaction.max.timeout.ms` */
const LONGEST = 900_000
const FIRST_PRODUCER = 1000n

export class TransactionCoordinator {
  private readonly transactions = new Map<string, Transaction>()
  private producers = FIRST_PRODUCER

  constructor(
    private readonly clock: InnerClock,
    private readonly topics: TopicStore,
    private readonly groups: GroupCoordinator,
    private readonly faults: Faults,
  ) {}

  newProducerId(): bigint {
    return this.producers++
  }

  /** A (new) owner of the transactional id. */
  init(id: string, timeout: number): { producerId: bigint; epoch: number } {
    if (!(timeout > 0 && timeout <= LONGEST)) throw protocolError('INVALID_TRANSACTION_TIMEOUT')
    const known = this.transactions.get(id)
    if (known === undefined) {
      const transaction: Transaction = {
        id,
        producerId: this.newProducerId(),
        epoch: 0,
        state: 'Empty',
        timeout,
        partitions: new Map(),
        groups: new Set(),
        timer: undefined,
      }
      this.transactions.set(id, transaction)
      return { producerId: transaction.producerId, epoch: 0 }
    }
    if (known.state === 'Ongoing') this.fence(known)
    else if (!isEnding(known)) {
      known.epoch++
      known.state = 'Empty'
      known.timeout = timeout
      return { producerId: known.producerId, epoch: known.epoch }
    }
    throw protocolError('CONCURRENT_TRANSACTIONS')
  }

  addPartitions(id: string, producerId: bigint, epoch: number, topics: readonly TopicPartitions[]): void {
    const transaction = this.mine(id, producerId, epoch)
    if (topics.some(({ topic, partitions }) => partitions.some((one) => !this.topics.partition(topic, one)))) {
      throw protocolError('UNKNOWN_TOPIC_OR_PARTITION')
    }
    this.goOn(transaction)
    for (const { topic, partitions } of topics) {
      const joined = transaction.partitions.get(topic) ?? new Set()
      for (const partition of partitions) joined.add(partition)
      transaction.partitions.set(topic, joined)
    }
  }

  addGroup(id: string, producerId: bigint, epoch: number, group: string): void {
    const transaction = this.mine(id, producerId, epoch)
    this.goOn(transaction)
    transaction.groups.add(group)
  }

  /** Pending until the transaction ends. No member and no generation is looked at. */
  commitOffsets(
    id: string,
    producerId: bigint,
    epoch: number,
    group: string,
    topics: readonly CommitTopic[],
  ): ProtocolErrorType[] {
    const transaction = this.mine(id, producerId, epoch)
    if (transaction.state !== 'Ongoing' || !transaction.groups.has(group)) throw protocolError('INVALID_TXN_STATE')
    return this.groups.commitPending(group, producerId, topics)
  }

  /** Whether a batch may stand on a partition as part of the transaction. */
  isOpenFor(id: string, producerId: bigint, epoch: number, topic: string, partition: number): boolean {
    const transaction = this.transactions.get(id)
    return (
      transaction?.producerId === producerId &&
      transaction.epoch === epoch &&
      transaction.state === 'Ongoing' &&
      transaction.partitions.get(topic)?.has(partition) === true
    )
  }

  end(id: string, producerId: bigint, epoch: number, commit: boolean): void {
    const transaction = this.mine(id, producerId, epoch)
    const { state } = transaction
    if (state === 'Ongoing') this.finish(transaction, commit)
    else if (state === (commit ? 'PrepareCommit' : 'PrepareAbort')) throw protocolError('CONCURRENT_TRANSACTIONS')
    else if (state !== (commit ? 'CompleteCommit' : 'CompleteAbort')) throw protocolError('INVALID_TXN_STATE')
  }

  ids(): string[] {
    return [...this.transactions.keys()]
  }

  view(id: string): TransactionView | undefined {
    const transaction = this.transactions.get(id)
    if (transaction === undefined) return undefined
    const { state, producerId, epoch, partitions, groups } = transaction
    const lists = [...partitions].map(([topic, list]) => ({ topic, partitions: [...list].sort((a, b) => a - b) }))
    return { state, producerId, epoch, partitions: lists, groups: [...groups] }
  }

  private mine(id: string, producerId: bigint, epoch: number): Transaction {
    const transaction = this.transactions.get(id)
    if (transaction?.producerId !== producerId) throw protocolError('INVALID_PRODUCER_ID_MAPPING')
    if (transaction.epoch !== epoch) throw protocolError('INVALID_PRODUCER_EPOCH')
    return transaction
  }

  /** Begins where none is open. Its time runs from here, whatever is added later. */
  private goOn(transaction: Transaction): void {
    if (isEnding(transaction)) throw protocolError('CONCURRENT_TRANSACTIONS')
    if (transaction.state === 'Ongoing') return
    transaction.state = 'Ongoing'
    const timeOut = (): void => this.fence(transaction)
    transaction.timer = this.clock.detached(() => this.clock.after(transaction.timeout, timeOut))
  }

  private fence(transaction: Transaction): void {
    transaction.epoch++
    this.finish(transaction, false)
  }

  private finish(transaction: Transaction, commit: boolean): void {
    transaction.timer?.cancel()
    transaction.timer = undefined
    transaction.state = commit ? 'PrepareCommit' : 'PrepareAbort'
    const topics = [...transaction.partitions].map(([topic, partitions]) => ({ topic, partitions: [...partitions] }))
    const fault = this.faults.take({ kind: 'markers', transactionalId: transaction.id, topics })
    // A broker tries until they stand, so a fault can only hold them up.
    if (fault?.do !== 'hold') {
      this.writeMarkers(transaction, commit)
      return
    }
    fault.onCaught()
    void fault.released.then(() => this.writeMarkers(transaction, commit))
  }

  private writeMarkers(transaction: Transaction, commit: boolean): void {
    const { producerId, epoch } = transaction
    for (const [topic, partitions] of transaction.partitions) {
      for (const partition of partitions) {
        this.topics.partition(topic, partition)?.appendMarker({ producerId, epoch }, commit, this.clock.now())
      }
    }
    for (const group of transaction.groups) this.groups.endPending(group, producerId, commit)
    transaction.partitions.clear()
    transaction.groups.clear()
    transaction.state = commit ? 'CompleteCommit' : 'CompleteAbort'
  }
}

const isEnding = ({ state }: Transaction): boolean => state === 'PrepareCommit' || state === 'PrepareAbort'
