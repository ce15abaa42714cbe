/**
 * One attempt at one record, by the engine itself: a consumer of its own on a fake broker of its own, which hold nothing
 * but this record. So context, decoding, schema, classifier, time-out, quick tries and routing are those of production.
 *
 * The record stands on the main topic for attempt 1, else on the retry topic of that attempt's tier, its failures so far
 * in its headers. The clock runs until the engine has said where the record goes, and no further.
 */
import { kafkajsDriver, type KafkaJsLike } from '../../adapters/kafkajs'
import { resolveOptions, type ResilientConsumerOptions, type StandardSchema, type ValueOf } from '../../config'
import { createConsumer } from '../../consume'
import { RetrylineError } from '../../errors'
import { silentLogger } from '../../ports'
import type { Handler, Rec } from '../../record'
import { checkRecord, type CheckedRecord } from '../checked-record'
import { createManualClock, type InnerClock, type ManualClock } from '../clock'
import { createFakeKafkaOn, type FakeKafka, type ForeignRecord } from '../create-fake-kafka'
import { insideOf } from '../inside'
import { show } from '../show'
import { copyForAttempt } from './attempt-record'
import { watchAttempt, type Watched } from './attempt-watch'
import { readable, type Readable } from './readable'

/** Options of the consumer that the handler is for, and which attempt. All may be left out. */
export interface AttemptOptions<
  V = unknown,
  S extends StandardSchema | undefined = StandardSchema<V> | undefined,
> extends Partial<Omit<ResilientConsumerOptions<V, S>, 'kafka' | 'handler'>> {
  /** 1 to the number of delays in the schedule, plus 1. Default 1. */
  readonly attempt?: number
  /** The clock of a fake broker, for a handler that waits for it (`kafka.clock.sleep('1m')`). One of its own by default. */
  readonly clock?: ManualClock
  /** Real ms after which a handler that does nothing is taken to be stuck, so that its time-out may fire. Default 2,000. */
  readonly stallAfter?: number
  /** Not used, like `handler`: they may be there so that the options of a consumer can be given as they are. */
  readonly kafka?: unknown
  readonly handler?: unknown
}

export interface Sent extends Readable {
  readonly topic: string
  readonly partition: number
}

export interface AttemptResult extends Watched {
  /** What `ctx.send()` has published: nothing, unless the attempt succeeded. */
  readonly sent: readonly Sent[]
  /** How much virtual time the attempt took, ms. */
  readonly elapsedMs: number
}

/** What a handler for tests is when nothing is said of its consumer. */
const DEFAULTS = { groupId: 'attempt', topic: 'orders', schedule: ['1m', '10m', '1h'] } as const
/** No attempt takes longer, in virtual time: a time-out is a day at most. */
const LIMIT_MS = 2 * 86_400_000

/**
 * Drives a handler alone: one attempt at one record, with the context, the classifier and the schedule that it has in
 * production; tells what becomes of the record. Topics that the handler sends to are there. Rejects with RETRYLINE_CONFIG
 * where the options are no good, and with RETRYLINE_TESTING where the record or the attempt is not.
 */
export async function attempt<V = unknown, S extends StandardSchema | undefined = StandardSchema<V> | undefined>(
  handler: Handler<ValueOf<V, S>>,
  record: ForeignRecord,
  options: AttemptOptions<V, S> = {},
): Promise<AttemptResult> {
  if (typeof options !== 'object' || options === null) throw refused('the options', options, 'give { attempt: 2 }')
  const { attempt: number = 1, clock: given, stallAfter, kafka: _, handler: __, ...rest } = options
  const checked = checkRecord('attempt()', record, false)
  const clock = clockFor(given, stallAfter)
  const kafka = createFakeKafkaOn(clock, {})
  const watch = watchAttempt(kafka, clock, () => consumer.pause())
  const consumerOptions = {
    ...DEFAULTS,
    logger: silentLogger,
    // One record alone never makes the threshold of production.
    outage: { failures: 1 },
    ...rest,
    topic: rest.topic ?? checked.topic ?? DEFAULTS.topic,
    kafka,
    // What is no function is for the options' own check.
    handler: typeof handler === 'function' ? watch.wrap(handler as Handler) : handler,
    hooks: [watch.hooks, ...[rest.hooks ?? []].flat()],
    topicSetup: 'create',
    startFrom: 'earliest',
    sameGroupInProcess: 'allow',
  } as unknown as ResilientConsumerOptions
  const settings = resolveOptions(consumerOptions)
  const { topology } = settings
  if (!Number.isInteger(number) || number < 1 || number > topology.maxAttempts) {
    throw refused('attempt', number, `the schedule makes attempts 1 to ${topology.maxAttempts}`)
  }
  const rec = placed(checked, topology.topics, clock.now())
  for (const main of topology.topics) kafka.createTopic(main, { partitions: rec.partition + 1 })
  const consumer = createConsumer(consumerOptions, (client, logger) => kafkajsDriver(client as KafkaJsLike, logger))

  const startedAt = clock.monotonic()
  if (number === 1) write(kafka, rec)
  const before = endsOf(kafka)
  try {
    await consumer.start()
    if (number > 1) {
      const copy = copyForAttempt(rec, number, settings, clock.now())
      kafka.produce(copy.topic, copy)
      before.set(`${copy.topic}/${copy.partition}`, 1n)
    }
    await clock.runUntil(watch.isOver, LIMIT_MS)
    const result = watch.result(topology)
    const sent = result.outcome === 'succeeded' ? newRecords(kafka, before) : []
    return { ...result, sent, elapsedMs: clock.monotonic() - startedAt }
  } finally {
    // Nothing that it needs time for: should something else on the clock be stuck, it is not waited for.
    void consumer.stop()
    await clock.settle().catch(() => undefined)
  }
}

const refused = (field: string, value: unknown, mend: string): RetrylineError =>
  new RetrylineError('RETRYLINE_TESTING', `attempt(): ${field} is ${show(value)}; ${mend}`)

function clockFor(given: ManualClock | undefined, stallAfter: number | undefined): InnerClock {
  if (given === undefined) return createManualClock(stallAfter === undefined ? {} : { stallAfter })
  if (typeof (given as Partial<InnerClock> | null)?.runUntil !== 'function') {
    throw refused('clock', given, 'give the clock of a fake broker: kafka.clock')
  }
  if (stallAfter !== undefined) throw refused('stallAfter', stallAfter, 'the given clock has its own: leave it out')
  return given as InnerClock
}

/** On the first main topic, partition 0, offset 0, now, where it does not say otherwise. */
function placed(record: CheckedRecord, topics: readonly string[], now: number): Rec {
  const { topic = topics[0] ?? '', partition = 0, offset = 0n, timestamp = now, key, value, headers } = record
  if (!topics.includes(topic)) throw refused('topic', topic, `the consumer reads ${topics.join(', ')}`)
  return { topic, partition, offset, timestamp, key, value, headers }
}

/** At its own offset, as if retention had taken what stood before it. */
function write(kafka: FakeKafka, { topic, partition, offset, timestamp, key, value, headers }: Rec): void {
  const log = insideOf(kafka, 'attempt()').broker.topics.mustFind(topic).partitions[partition]
  if (log !== undefined) log.logStart = log.end = offset
  kafka.produce(topic, { partition, timestamp, key, value, headers })
}

function endsOf(kafka: FakeKafka): Map<string, bigint> {
  const { topics } = insideOf(kafka, 'attempt()').broker
  return new Map(
    topics.names().flatMap((name) => topics.get(name).partitions.map(({ end }, id) => [`${name}/${id}`, end])),
  )
}

function newRecords(kafka: FakeKafka, before: ReadonlyMap<string, bigint>): Sent[] {
  const { topics } = insideOf(kafka, 'attempt()').broker
  return topics.names().flatMap((topic) =>
    kafka
      .records(topic)
      .filter(({ partition, offset }) => offset >= (before.get(`${topic}/${partition}`) ?? 0n))
      .map((record) => ({ ...readable(record), topic, partition: record.partition })),
  )
}
