/** Puts the fake together: a broker, a clock, a client that speaks kafkajs, and what a test does behind its back. */
import { RetrylineError } from '../errors'
import { CLOCK, PROCESS, RANDOM, type Clock, type Random } from '../ports'
import { createBrokerControls, type BrokerControls } from './broker-controls'
import { FakeBroker } from './broker'
import { checkOffset, checkOptions, checkTopic } from './checked-arguments'
import { checkRecord } from './checked-record'
import { createManualClock, type InnerClock, type ManualClock } from './clock'
import type { ClientContext } from './cluster'
import { codecOn } from './codecs'
import { createFakeAdmin, type FakeAdmin } from './fake-admin'
import { createFakeConsumer, type FakeConsumer, type LiveConsumer } from './fake-consumer'
import { createFakeProducer, type FakeProducer } from './fake-producer'
import type { CommitRecord } from './group-offsets'
import { copy } from './headers'
import { withInside } from './inside'
import type { PartitionLog } from './log'
import { silentKafkaLogger } from './logger'
import { createDefaultPartitioner } from './partitioner'
import { toMs, type Duration } from './duration'
import type { RetryOptions } from './retrier'
import type { TopicOptions } from './topics'
import type { FakeConsumerConfig, FakeLogger, FakeProducerConfig } from './types'

export interface FakeKafkaOptions {
  /** Topics to begin with: a number of partitions, or more about it. None is ever created by use. */
  topics?: Record<string, number | TopicSpec>
  /** Where the clock starts: the real now unless told. */
  startAt?: Date | number
  /** Real ms without progress after which `clock.advance` takes a call to be stuck. 2,000 by default. */
  stallAfter?: number
  clientId?: string
  /** The client's retry settings, as `new Kafka({ retry })` has them. */
  retry?: RetryOptions
  /** How many nodes the cluster has. Leaders are dealt out over them, and a topic has a replica on each. 1 by default. */
  brokers?: number
  /**
   * How often the broker looks for what retention and compaction throw away: 5 minutes by default, as Kafka's
   * `log.retention.check.interval.ms` (a number is ms).
   */
  cleanEvery?: Duration
  /**
   * Let polls take the time that kafkajs's take: `maxWaitTimeInMs` for an idle one, which a resume does not end.
   * Moving the clock far is then slow.
   */
  slowPolls?: boolean
}

export interface TopicSpec {
  partitions?: number
  replicationFactor?: number
  config?: Readonly<Record<string, string>>
}

/** A client: what `new Kafka()` is. */
export interface FakeClient {
  consumer(config: FakeConsumerConfig): FakeConsumer
  producer(config?: FakeProducerConfig): FakeProducer
  admin(config?: { retry?: RetryOptions }): FakeAdmin
  logger(): FakeLogger
  readonly [CLOCK]: Clock
  /** Each client plays a process of its own. */
  readonly [PROCESS]: object
  /** Only under `explore`: a consumer's own chance (back-off, jitter) then comes from the seed. */
  readonly [RANDOM]?: Random
}

export interface FakeRecord {
  readonly partition: number
  readonly offset: bigint
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[]
  /** What became of its transaction; only where uncommitted records were asked for too. */
  readonly transaction?: 'open' | 'committed' | 'aborted'
}

type Bytes = Buffer | string | null

/** A record as any producer could write it: null headers, repeated and odd names included. */
export interface ForeignRecord {
  key?: Bytes
  value?: Bytes
  headers?: readonly (readonly [name: string, value: Bytes])[] | Readonly<Record<string, Buffer | string | Bytes[]>>
  /** Else by the key's hash, else round robin. */
  partition?: number
  timestamp?: Date | number
  /** Where it is given it must be the topic that is written to, and the offset that comes next there. */
  topic?: string
  offset?: bigint | number | string
}

export interface FakeKafka extends FakeClient {
  readonly clock: ManualClock
  readonly broker: BrokerControls
  /** Another client of the same broker, as another process has it. */
  client(options?: { clientId?: string; retry?: RetryOptions }): FakeClient
  /**
   * What stands on a topic (or one partition of it), by partition and offset. Records of transactions that are open or
   * were aborted are left out, unless `uncommitted` asks for them.
   */
  records(topic: string, partition?: number, options?: { uncommitted?: boolean }): FakeRecord[]
  /** What a group has committed, by partition. */
  committed(groupId: string, topic: string): Map<number, { offset: bigint; metadata: string }>
  /** Every commit of a group that the broker took, in order. */
  commits(groupId: string, topic?: string): CommitRecord[]
  createTopic(name: string, spec?: TopicSpec): void
  addPartitions(topic: string, count: number): void
  /** Moves the log's start, as retention does. */
  deleteRecords(topic: string, partition: number, beforeOffset: bigint | number | string): void
  produce(topic: string, record: ForeignRecord): { partition: number; offset: bigint }
}

export function createFakeKafka(options: FakeKafkaOptions = {}): FakeKafka {
  checkOptions(options)
  return createFakeKafkaOn(createManualClock(options), options)
}

/** A fake broker on a clock that others may use too; with chance that comes from a seed, under `explore`. */
export function createFakeKafkaOn(clock: InnerClock, options: FakeKafkaOptions, random?: Random): FakeKafka {
  const contexts = new WeakMap<object, ClientContext>()
  const broker = new FakeBroker(
    clock,
    options.brokers,
    options.cleanEvery === undefined ? undefined : toMs(options.cleanEvery),
  )
  const consumers: LiveConsumer[] = []
  const place = createDefaultPartitioner()
  for (const [name, spec] of Object.entries(options.topics ?? {})) {
    broker.topics.create(name, typeof spec === 'number' ? { partitions: spec } : spec)
  }

  const client = (clientId = 'kafkajs', retry = options.retry): FakeClient => {
    const context: ClientContext = {
      broker,
      clientId,
      retry,
      committed: new Map(),
      slowPolls: options.slowPolls ?? false,
    }
    const made: FakeClient = {
      consumer: (config) => createFakeConsumer(context, config, (consumer) => void consumers.push(consumer)),
      producer: (config) => createFakeProducer(context, config),
      admin: (config) => createFakeAdmin(context, config),
      logger: silentKafkaLogger,
      [CLOCK]: clock,
      [PROCESS]: {},
      ...(random && { [RANDOM]: random }),
    }
    contexts.set(made, context)
    return made
  }

  const partitionFor = (topic: string, count: number, key: Buffer | null, partition: number | undefined): number => {
    const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({ partitionId }) as never)
    return place({
      topic,
      partitionMetadata,
      message: { key, value: null, ...(partition == null ? {} : { partition }) },
    })
  }

  const own = client(options.clientId)
  const kafka: FakeKafka = {
    ...own,
    clock,
    broker: createBrokerControls(broker, consumers, (one) => contexts.get(one)),
    client: ({ clientId, retry } = {}) => client(clientId ?? options.clientId, retry),

    records(topic, partition, { uncommitted = false } = {}) {
      const { partitions } = broker.topics.mustFind(topic, partition)
      return partitions.flatMap((log, id) =>
        partition !== undefined && partition !== id ? [] : viewOf(log, id, uncommitted),
      )
    },

    committed(groupId, topic) {
      broker.topics.mustFind(topic)
      return new Map(broker.coordinator.offsetsOf(groupId).get(topic))
    },

    commits: (groupId, topic) =>
      broker.coordinator.history(groupId).filter((commit) => topic === undefined || commit.topic === topic),

    createTopic(name, spec: TopicOptions = {}) {
      checkTopic('kafka.createTopic()', name, spec)
      broker.topics.create(name, spec)
    },

    addPartitions: (topic, count) => broker.topics.grow(topic, broker.topics.mustFind(topic).partitions.length + count),

    deleteRecords(topic, partition, beforeOffset) {
      const { partitions } = broker.topics.mustFind(topic, partition ?? -1)
      partitions[partition]?.deleteBefore(checkOffset('kafka.deleteRecords()', beforeOffset))
    },

    produce(topic, record) {
      const checked = checkRecord('kafka.produce()', record, false)
      const found = broker.topics.mustFind(topic, checked.partition)
      const { partitions } = found
      const { key, value, headers, timestamp = clock.now() } = checked
      const partition = partitionFor(topic, partitions.length, key, checked.partition)
      const log = partitions[partition]
      if (log === undefined) throw new RetrylineError('RETRYLINE_TESTING', `there is no ${topic}/${partition}`)
      const refuse = (problem: string) => new RetrylineError('RETRYLINE_TESTING', `kafka.produce(): ${problem}`)
      if (checked.topic !== undefined && checked.topic !== topic) {
        throw refuse(`topic is '${checked.topic}' in the record; produce it to that topic, or leave it out`)
      }
      if (checked.offset !== undefined && checked.offset !== log.end) {
        throw refuse(`offset is ${checked.offset}n; the next of ${topic}/${partition} is ${log.end}n: leave it out`)
      }
      const byLog = broker.topics.setting(found, 'message.timestamp.type') === 'LogAppendTime'
      const written = { timestamp: byLog ? clock.now() : timestamp, key, value, headers, control: false }
      const codec = codecOn(broker.topics.setting(found, 'compression.type'))
      const offset = log.append([written], undefined, byLog ? Number(timestamp) : undefined, codec)
      return { partition, offset }
    },
  }
  const context = contexts.get(own)
  if (context !== undefined) contexts.set(kafka, context)
  return withInside(kafka, { clock, broker, consumers, slowPolls: options.slowPolls ?? false })
}

function viewOf(log: PartitionLog, partition: number, uncommitted: boolean): FakeRecord[] {
  const view: FakeRecord[] = []
  for (const record of log.records) {
    if (record.control) continue
    const fate = log.fateOf(record)
    if (!uncommitted && (fate === 'open' || fate === 'aborted')) continue
    view.push({
      partition,
      offset: record.offset,
      timestamp: record.timestamp,
      key: copy(record.key),
      value: copy(record.value),
      headers: record.headers.map(([name, bytes]) => [name, copy(bytes)] as const),
      ...(uncommitted && fate !== undefined ? { transaction: fate } : {}),
    })
  }
  return view
}
