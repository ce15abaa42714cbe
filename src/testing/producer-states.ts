/**
 * What one partition knows of its idempotent and transactional producers: Kafka's ProducerStateManager.
 *
 * Of a producer id: its epoch, the last sequence number, its last five batches, and where its open transaction began.
 * A batch is  known (the same sequence numbers as one of the five: answered with that one's place, and not written)
 *          -> refused (an old epoch; a sequence that does not follow the last) or written.
 * A marker ends the transaction; one that aborts leaves an entry behind, by which readers know what to leave out.
 *
 * Must never happen: the last stable offset falling back; one batch written twice under the same sequence numbers.
 */
import { protocolError } from './errors'

/** Whose batch it is. A producer that is not idempotent has the id -1. */
export interface ProducerMark {
  readonly producerId: bigint
  readonly epoch: number
  /** Of its first record, counted for each partition. */
  readonly sequence: number
  readonly transactional: boolean
}

/** As an answer to a fetch lists them: in the order in which they were aborted, not in that in which they began. */
export interface AbortedTransaction {
  readonly producerId: bigint
  readonly firstOffset: bigint
  /** Of its marker. */
  readonly lastOffset: bigint
}

/** A batch that the broker has already. */
export interface KnownBatch {
  readonly base: bigint
  readonly timestamp: number
}

interface Written extends KnownBatch {
  readonly first: number
  readonly last: number
}

interface ProducerState {
  epoch: number
  last: number
  batches: Written[]
}

export const NO_PRODUCER: ProducerMark = { producerId: -1n, epoch: 0, sequence: 0, transactional: false }

const REMEMBERED = 5
const HIGHEST = 2 ** 31 - 1
const NOTHING = -1

export class ProducerStates {
  private readonly states = new Map<bigint, ProducerState>()
  /** Where each open transaction began, the oldest first. */
  private readonly open = new Map<bigint, bigint>()
  private readonly abortedOnes: AbortedTransaction[] = []

  /** The first offset of the oldest transaction that is open: nothing from there on is stable. */
  get firstOpen(): bigint | undefined {
    const [first] = this.open.values()
    return first
  }

  get aborted(): readonly AbortedTransaction[] {
    return this.abortedOnes
  }

  openFrom(producerId: bigint): bigint | undefined {
    return this.open.get(producerId)
  }

  /** The batch itself, if it stands there already. Throws what the broker refuses. */
  check({ producerId, epoch, sequence }: ProducerMark, count: number): KnownBatch | undefined {
    const state = this.states.get(producerId)
    if (producerId < 0n || state === undefined) return undefined
    const last = lastOf(sequence, count)
    const known = state.batches.find((batch) => batch.first === sequence && batch.last === last)
    if (known !== undefined && state.epoch === epoch) return known
    if (epoch < state.epoch) throw protocolError('INVALID_PRODUCER_EPOCH')
    if (!follows(epoch === state.epoch ? state.last : NOTHING, sequence)) {
      throw protocolError('OUT_OF_ORDER_SEQUENCE_NUMBER')
    }
    return undefined
  }

  wrote({ producerId, epoch, sequence, transactional }: ProducerMark, count: number, batch: KnownBatch): void {
    if (producerId < 0n) return
    const before = this.states.get(producerId)
    const same = before?.epoch === epoch
    const last = lastOf(sequence, count)
    this.states.set(producerId, {
      epoch,
      last,
      batches: [...(same ? before.batches : []), { ...batch, first: sequence, last }].slice(-REMEMBERED),
    })
    if (transactional && !this.open.has(producerId)) this.open.set(producerId, batch.base)
  }

  /** A marker stands at `offset`. The epoch that it bears holds from now on. */
  ended(producerId: bigint, epoch: number, committed: boolean, offset: bigint): void {
    const before = this.states.get(producerId)
    const firstOffset = this.open.get(producerId)
    this.open.delete(producerId)
    if (firstOffset !== undefined && !committed) this.abortedOnes.push({ producerId, firstOffset, lastOffset: offset })
    const same = before?.epoch === epoch
    this.states.set(producerId, {
      epoch,
      last: same ? before.last : NOTHING,
      batches: same ? before.batches : [],
    })
  }
}

/** Sequence numbers go from the highest 32-bit integer back to 0. */
const lastOf = (first: number, count: number): number => (first + count - 1) % (HIGHEST + 1)

const follows = (last: number, next: number): boolean => next === last + 1 || (next === 0 && last === HIGHEST)
