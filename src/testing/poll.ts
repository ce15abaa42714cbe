/**
 * A fetch at the broker: answered at once where there is something to read, else it stands until there is, until its
 * time is over (where polls take time at all) or until the consumer has a reason to look anew.
 */
import type { FakeBroker } from './broker'
import { KafkaJSOffsetOutOfRange, protocolError } from './errors'
import type { PartitionLog, StoredRecord } from './log'
import type { AbortedTransaction } from './producer-states'

export interface FetchPartition {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  readonly maxBytes: number
}

/** What kafkajs gives its `broker.fetch`, and two things that it does not. */
export interface FetchRequest {
  /** Virtual ms. A fetch stands until there is news, unless this is 0 or polls are to take their time. */
  maxWaitTime: number
  maxBytes: number
  topics: { topic: string; partitions: { partition: number; fetchOffset: string; maxBytes: number }[] }[]
  group: string
  /** Tells the consumer that a poll stands; returns how to tell it that it ended. */
  sleep: (wake: () => void) => () => void
}

/** The partitions as they are on the broker, not yet as kafkajs's messages. */
export interface FetchAnswer {
  responses: { topicName: string; partitions: FetchedPartition[] }[]
}

export interface FetchedPartition extends FetchPartition {
  readonly records: readonly StoredRecord[]
  readonly end: bigint
  /** Of which a reader of committed records is told. */
  readonly aborted: readonly AbortedTransaction[]
}

export interface PollRequest {
  readonly wanted: readonly FetchPartition[]
  readonly maxBytes: number
  readonly readUncommitted: boolean
  /** Virtual ms; Infinity: only data or the consumer ends it; 0: what is there now. */
  readonly wait: number
  /** The node that is asked, and by whom. */
  readonly line: { readonly node: number; readonly client: object }
  /** Tells the consumer that a poll stands; returns how to tell it that it ended. */
  readonly sleep: (wake: () => void) => () => void
}

export function openPoll(broker: FakeBroker, request: PollRequest): FetchedPartition[] | Promise<FetchedPartition[]> {
  const found = read(broker, request)
  if (request.wait === 0 || found.some(({ records }) => records.length > 0)) return found
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
      broker.onPoll({ ...request.line, wake: endSoon, cut }),
      request.sleep(end),
      ...request.wanted.map(({ topic, partition, offset }) => {
        const log = logOf(broker, topic, partition)
        // What stands behind an open transaction is no news.
        return log.onAppend(() => limitOf(log, request) > offset && endSoon())
      }),
    ]
    if (request.wait !== Infinity) {
      const timer = broker.clock.after(request.wait, end)
      stops.push(() => timer.cancel())
    }
  })
}

const limitOf = (log: PartitionLog, { readUncommitted }: PollRequest): bigint =>
  readUncommitted ? log.end : log.lastStable

function read(broker: FakeBroker, request: PollRequest): FetchedPartition[] {
  const { wanted, maxBytes, readUncommitted, line } = request
  let left = maxBytes
  let none = true
  return wanted.map((one) => {
    const { topic, partition, offset } = one
    broker.topics.checkLeader(topic, partition, line.node)
    const log = logOf(broker, topic, partition)
    if (offset < log.logStart || offset > log.end) throw new KafkaJSOffsetOutOfRange(topic, partition)
    // The first batch of the whole answer comes even if it is larger than any limit; of the rest, what fits.
    const { records, bytes } = log.read(offset, Math.min(left, one.maxBytes), none, limitOf(log, request))
    if (records.length > 0) none = false
    left -= bytes
    const aborted = readUncommitted ? [] : log.producers.aborted.filter(({ lastOffset }) => lastOffset >= offset)
    return { ...one, records, end: log.end, aborted }
  })
}

function logOf(broker: FakeBroker, topic: string, partition: number) {
  const log = broker.topics.partition(topic, partition)
  if (log === undefined) throw protocolError('UNKNOWN_TOPIC_OR_PARTITION')
  return log
}
