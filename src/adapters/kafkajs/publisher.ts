import { RetrylineError } from '../../errors'
import type { DriverTools, Publisher } from '../../ports'
import { createDenials, type Denials } from './denied'
import type { KafkaJsLike, ProducerLike } from './kafkajs-like'
import { makeProducer, PRODUCER, sendAll, writeTo } from './sending'

/**
 * Waits for all in-sync replicas and is not idempotent: an idempotent kafkajs producer that has had a `send` rejected
 * acknowledges a later record at the offset of the lost one, and that record is nowhere (seen on a real broker).
 */
export function createKafkajsPublisher(
  kafka: KafkaJsLike,
  { clock, logger }: DriverTools,
  denials: Denials = createDenials(kafka),
): Publisher {
  let producer: ProducerLike | undefined
  let connecting: Promise<ProducerLike> | undefined
  let closed = false
  /** Connections that were given up and have not ended yet. */
  const leaving = new Set<Promise<void>>()

  function connected(): Promise<ProducerLike> {
    if (closed) return Promise.reject(new RetrylineError('RETRYLINE_STATE', 'the publisher is closed'))
    const mine = (connecting ??= connect())
    mine.catch(() => {
      if (connecting === mine) connecting = undefined
    })
    return mine
  }

  async function connect(): Promise<ProducerLike> {
    const made = makeProducer(kafka, PRODUCER, clock)
    producer = made
    await made.connect()
    // Not `producer`: a reset meanwhile has cleared that. What is sent on this one then fails and is sent again.
    return made
  }

  function drop(): Promise<void> {
    const [old, made] = [producer, connecting]
    producer = undefined
    connecting = undefined
    if (old === undefined) return Promise.resolve()
    const left = leave(old, made).finally(() => leaving.delete(left))
    leaving.add(left)
    return left
  }

  async function leave(old: ProducerLike, made: Promise<unknown> | undefined): Promise<void> {
    // A disconnect during a connect ends nothing: the connection is made all the same, and stays.
    await Promise.allSettled([made])
    try {
      await old.disconnect()
    } catch (error) {
      logger.debug('a producer did not disconnect cleanly', { error: String(error) })
    }
  }

  return {
    async connect() {
      await connected()
    },
    async publish(records, compress = false) {
      const ready = await connected()
      return sendAll(ready, records, compress).catch(async (error: unknown) => {
        throw await denials.explain(error, [writeTo(records)])
      })
    },
    reset: drop,
    async disconnect() {
      closed = true
      void drop()
      await Promise.all(leaving)
    },
  }
}
