/**
 * A fetch at the broker: answered at once where there is something to read, else it stands until there is, until its
 * time is over (where polls take time at all) or until the consumer has a reason to look anew.
 */
import type { FakeBroker } from './broker'
import { KafkaJSOffsetOutOfRange, protocolError } from './errors'
import type { StoredRecord } from './log'

export interface FetchPartition {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
}

export interface FetchedPartition extends FetchPartition {
  readonly records: readonly StoredRecord[]
  readonly end: bigint
}

export interface PollRequest {
  readonly wanted: readonly FetchPartition[]
  readonly maxBytes: number
  readonly maxBytesPerPartition: number
  /** Virtual ms; Infinity: only data or the consumer ends it. */
  readonly wait: number
  readonly client: object
  /** Tells the consumer that a poll stands; returns how to tell it that it ended. */
  readonly sleep: (wake: () => void) => () => void
}

export function openPoll(broker: FakeBroker, request: PollRequest): FetchedPartition[] | Promise<FetchedPartition[]> {
  const found = read(broker, request)
  if (found.some(({ records }) => records.length > 0)) return found
  return new Promise((resolve, reject) => {
    let over = false
    const cut = (): void => {
      over = true
      for (const stop of stops) stop()
    }
    const end = (): void => {
      if (over) return
      cut()
      void (async () => read(broker, request))().then(resolve, reject)
    }
    // Later, in a macrotask: what is produced in one go is then fetched in one go.
    const endSoon = (): void => void broker.clock.soon(end)
    const stops = [
      broker.onPoll({ client: request.client, wake: endSoon, cut }),
      request.sleep(end),
      ...request.wanted.map(({ topic, partition }) => logOf(broker, topic, partition).onAppend(endSoon)),
    ]
    if (request.wait !== Infinity) {
      const timer = broker.clock.after(request.wait, end)
      stops.push(() => timer.cancel())
    }
  })
}

function read(broker: FakeBroker, { wanted, maxBytes, maxBytesPerPartition }: PollRequest): FetchedPartition[] {
  let left = maxBytes
  let none = true
  return wanted.map(({ topic, partition, offset }) => {
    const log = logOf(broker, topic, partition)
    if (offset < log.logStart || offset > log.end) throw new KafkaJSOffsetOutOfRange(topic, partition)
    // The first batch of the whole answer comes even if it is larger than any limit; of the rest, what fits.
    const { records, bytes } = log.read(offset, Math.min(left, maxBytesPerPartition), none)
    if (records.length > 0) none = false
    left -= bytes
    return { topic, partition, offset, records, end: log.end }
  })
}

function logOf(broker: FakeBroker, topic: string, partition: number) {
  const log = broker.topics.partition(topic, partition)
  if (log === undefined) throw protocolError('UNKNOWN_TOPIC_OR_PARTITION')
  return log
}
