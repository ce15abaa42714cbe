/**
 * The transactional producer of one id.
 *
 * States:  (nothing) -> taken over, connected <-> asleep -> (nothing)
 *   - taken over: by beginning a transaction and aborting it, which asks the broker for a new epoch. `connect()` asks for
 *     nothing, so it fences nobody.
 *   - asleep: disconnected after a while without a transaction, since kafkajs runs a timer every millisecond for each
 *     connection that has got an answer. The producer keeps its id and epoch, so that connecting is enough to go on.
 *   - given up: after any failure. A kafkajs producer whose commit or abort was not answered never begins another.
 *
 * Must never happen: a producer that goes on after a failure; a transaction of a producer that was given up.
 */
import { RetrylineError } from '../../errors'
import type { DriverTools, Timer, Transaction, Transactor } from '../../ports'
import type { Asked, Denials } from './denied'
import { clusterOf } from './framing'
import { endHanging, isHanging, lastEnd, type End, type OffsetOf } from './hanging'
import type { KafkaJsLike, ProducerLike, TransactionLike } from './kafkajs-like'
import { makeProducer, sendInTransaction, TRANSACTIONAL, writeTo } from './sending'
import type { CoordinatorsLike } from './stable-offsets'

/** A transaction that has not ended by then is aborted by the broker, so that its readers may go on, ms (kafkajs's default). */
const TRANSACTION_TIMEOUT = 60_000
/** How long a connection without a transaction is kept, ms. */
const IDLE_MS = 5_000
const HANGING = 'the group was never told of the end of a transaction; it is ended anew'

interface Held {
  readonly producer: ProducerLike
  /** The connection; undefined while asleep. */
  connection: Promise<void> | undefined
  /** The end of the last one. */
  ending: Promise<void> | undefined
  /** What kafkajs is at: it goes on with it, and connects anew for it, after a disconnect. */
  readonly work: Set<Promise<unknown>>
}

export function createKafkajsTransactor(
  kafka: KafkaJsLike,
  transactionalId: string,
  { clock, logger }: DriverTools,
  denials: Denials,
  offset?: OffsetOf,
): Transactor {
  let held: Held | undefined
  let idle: Timer | undefined
  let closed = false
  const leaving = new Set<Promise<void>>()
  /** How the last transaction of the id has ended, as far as anybody knew when it was asked. */
  let end: End = 'aborted'

  async function takeOver(): Promise<void> {
    drop()
    if (closed) throw given()
    const config = { ...TRANSACTIONAL, transactionalId, transactionTimeout: TRANSACTION_TIMEOUT }
    const producer = makeProducer(kafka, config, clock)
    const mine: Held = { producer, connection: producer.connect(), ending: undefined, work: new Set() }
    held = mine
    await mine.connection
    if (held !== mine) throw given()
    const cluster = clusterOf(producer) as CoordinatorsLike | undefined
    if (offset !== undefined) {
      // Before the id is taken over, which makes this unknown: not while there is nobody who could be asked afterwards.
      await during(mine, isHanging(cluster, offset))
      end = (await during(mine, lastEnd(cluster, transactionalId))) ?? end
      if (held !== mine) throw given()
    }
    await during(mine, (await during(mine, explained(producer.transaction()))).abort())
    if (held !== mine) throw given()
    if (offset !== undefined && (await during(mine, isHanging(cluster, offset)))) {
      logger.warn(HANGING, { transactionalId, end })
      await during(mine, endHanging(await during(mine, producer.transaction()), offset.groupId, end))
      if (held !== mine) throw given()
    }
    sleepLater(mine)
  }

  async function begin(): Promise<Transaction> {
    const mine = held
    if (mine === undefined) throw given()
    stayAwake()
    await mine.ending
    if (held !== mine) throw given()
    mine.connection ??= mine.producer.connect()
    await mine.connection
    if (held !== mine) throw given()
    const open = await during(mine, mine.producer.transaction())
    const holding = (): TransactionLike => {
      if (held !== mine) throw given()
      return open
    }
    return {
      publish: async (records, compress = false) =>
        during(mine, explained(sendInTransaction(holding(), records, compress), writeTo(records))),
      sendOffset: async (groupId, { topic, partition, offset, metadata }) =>
        during(
          mine,
          explained(
            holding().sendOffsets({
              consumerGroupId: groupId,
              topics: [{ topic, partitions: [{ partition, offset: offset.toString(), metadata }] }],
            }),
            { operation: 'Read', resourceType: 'group', names: [groupId] },
            { operation: 'Read', resourceType: 'topic', names: [topic] },
          ),
        ),
      commit: async () => {
        await during(mine, explained(holding().commit()))
        if (held === mine) sleepLater(mine)
      },
    }
  }

  function during<T>(mine: Held, work: Promise<T>): Promise<T> {
    mine.work.add(work)
    const over = (): void => void mine.work.delete(work)
    work.then(over, over)
    return work
  }

  /** Whatever is refused for want of a permission says which. */
  function explained<T>(work: Promise<T>, ...asked: Asked[]): Promise<T> {
    const own: Asked = { operation: 'Write', resourceType: 'transactional-id', names: [transactionalId] }
    return work.catch(async (error: unknown) => {
      throw await denials.explain(error, [own, ...asked])
    })
  }

  function sleepLater(mine: Held): void {
    stayAwake()
    idle = clock.after(IDLE_MS, () => {
      idle = undefined
      if (held !== mine) return
      mine.ending = leave(mine)
      mine.connection = undefined
    })
  }

  function stayAwake(): void {
    idle?.cancel()
    idle = undefined
  }

  function drop(): void {
    stayAwake()
    const old = held
    held = undefined
    if (old?.connection === undefined) return
    const { producer, work } = old
    void leave(old).then(async () => {
      if (work.size === 0) return
      // Not waited for by a stop: kafkajs may try again for long, where the broker does not answer.
      await Promise.allSettled([...work])
      await disconnect(producer, undefined)
    })
  }

  function leave(old: Held): Promise<void> {
    const left = disconnect(old.producer, old.connection).finally(() => leaving.delete(left))
    leaving.add(left)
    return left
  }

  async function disconnect(producer: ProducerLike, made: Promise<void> | undefined): Promise<void> {
    // A disconnect during a connect ends nothing: the connection is made all the same, and stays.
    await Promise.allSettled([made])
    try {
      await producer.disconnect()
    } catch (error) {
      logger.debug('a transactional producer did not disconnect cleanly', { error: String(error) })
    }
  }

  function given(): RetrylineError {
    return new RetrylineError('RETRYLINE_STATE', `the producer of '${transactionalId}' was given up`)
  }

  return {
    takeOver,
    begin,
    async reset() {
      drop()
      await Promise.all(leaving)
    },
    async disconnect() {
      closed = true
      drop()
      await Promise.all(leaving)
    },
  }
}
