/**
 * What the engine needs of a Kafka client. An adapter (kafkajs first) implements it, and one contract suite decides
 * whether it does so: the same tests on a fake and on a real broker.
 *
 * The seam is thin on purpose and outside semver. What a client does wrong (and is known to) is dealt with behind it;
 * what the engine must decide (positions, order, offsets) stays in front of it.
 */
import type { Message, Outgoing } from '../record'
import type { Clock } from './clock'
import type { Logger } from './logger'
import type { Random } from './random'

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

export interface Assignment {
  readonly memberId: string
  readonly partitions: readonly TopicPartition[]
}

/** What one fetch brought for one partition. */
export interface FetchedBatch extends TopicPartition {
  /** The position that was asked for: stands in for the generation, which a batch does not carry. */
  readonly fetchedOffset: bigint
  /** The last offset the batch covers, control records and compacted ones included. */
  readonly lastOffset: bigint
  readonly messages: Message[]
  /** Moves the client's fetch position to `next`: behind `lastOffset`, or behind one of the messages; commits nothing. */
  resolve(next: bigint): void
}

/** Called by the driver, always synchronously with what it reports; nothing that it throws may reach the client. */
export interface GroupListener {
  /** A new generation: what this member owns from now on. */
  assigned(assignment: Assignment): void
  /** A rebalance is coming; commits are still taken for a moment. */
  rebalancing(): void
  /** A promise holds back the next fetch from that broker, so it must be short. */
  batch(batch: FetchedBatch): void | Promise<void>
  /**
   * The client's fetch position moved to `next` over records that no handler sees (aborted, control, compacted), the
   * first of which stood at `first`.
   */
  passed(where: TopicPartition, first: bigint, next: bigint): void
  /**
   * The batch at `offset` cannot be decoded. The driver leaves its partition out, whatever is resumed, and looks at it again
   * in `againInMs`: then a batch of it comes, or this again. Until then nothing of it comes.
   */
  unreadable(where: TopicPartition, offset: bigint, error: unknown, againInMs: number): void
  /** The client's consumer died. `restarting`: it comes back, by itself or by the driver, unless it is stopped. */
  crashed(error: unknown, restarting: boolean): void
  /** It is back, and about to join. */
  restarted(): void
  /** The broker has answered a fetch: a sign of life. */
  fetched(): void
  /** Something failed inside the driver and was contained. */
  problem(where: string, error: unknown): void
}

export interface GroupConsumerOptions {
  readonly groupId: string
  readonly topics: readonly string[]
  readonly sessionTimeoutMs: number
  readonly heartbeatIntervalMs: number
  readonly rebalanceTimeoutMs: number
  /** How long an idle fetch may wait: the delay of a resume, a heartbeat and a stop. */
  readonly maxWaitMs: number
  readonly maxBytes: number
  readonly maxBytesPerPartition: number
  readonly metadataMaxAgeMs: number
  /** Partitions handed to `batch` side by side. */
  readonly concurrency: number
  /** What this member is to be known by to the others (`tags`). */
  readonly tag: string
}

export interface CommitEntry extends TopicPartition {
  readonly offset: bigint
  readonly metadata: string
}

export interface GroupConsumer {
  /** Resolves when the group is joined and the first assignment has been reported. */
  start(): Promise<void>
  /**
   * Leaves the group and disconnects; never rejects. From its call on no restart happens. It waits for a join that is
   * under way, however long that takes, since a client that is stopped before it has joined joins all the same; who
   * calls bounds the wait.
   */
  stop(): Promise<void>
  /** Sets the position of the next fetch. The three do nothing where the client is not running. */
  seek(where: TopicPartition, offset: bigint): void
  pause(where: TopicPartition): void
  resume(where: TopicPartition): void
  /** One try, under the generation that is current at the call; rejects when the broker refuses. */
  commit(entries: readonly CommitEntry[]): Promise<void>
  /** Whether anything may be committed at present (the client runs and has joined). */
  readonly running: boolean
  /** Whether a commit is surely tried but once. Before the first batch the client may repeat it in a later generation. */
  readonly commitsOnce: boolean
  /**
   * The tags of the group's members, as its coordinator tells them now. Undefined where it does not, or the group is amid a
   * rebalance. Never rejects.
   */
  tags(): Promise<ReadonlySet<string> | undefined>
  /**
   * What the group has committed for these partitions: all that was acknowledged, and every transaction that has ended. A plain
   * look-up may miss for a moment what the last transaction committed (before Kafka 4), and what was acknowledged just before
   * the group got another coordinator (Kafka 4). Undefined where the client cannot ask so.
   */
  settledOffsets(partitions: readonly TopicPartition[]): Promise<readonly CommittedOffset[] | undefined>
}

export interface Acknowledgement extends TopicPartition {
  /** Kafka's error code; 0 is success. */
  readonly errorCode: number
}

export interface Publisher {
  connect(): Promise<void>
  /** Waits for all in-sync replicas. Resolves with one entry for each topic-partition that the broker acknowledged. */
  publish(records: readonly Outgoing[], compress?: boolean): Promise<readonly Acknowledgement[]>
  /** Gives up the connection, so that the next publish starts on a new one. */
  reset(): Promise<void>
  disconnect(): Promise<void>
}

/**
 * The one producer of a transactional id. After anything that rejects, only `takeOver()` may follow: what the broker has of
 * the transaction is not known, and the producer that made it may never answer again.
 */
export interface Transactor {
  /**
   * Becomes the owner of the id: whoever had it before is refused from now on, and what that one had open is aborted.
   * Gives up the connection of before. One try.
   */
  takeOver(): Promise<void>
  /** The transaction is known to the broker from its first record on. */
  begin(): Promise<Transaction>
  /** Gives up the connection, and with it what is open. */
  reset(): Promise<void>
  disconnect(): Promise<void>
}

export interface Transaction {
  /** As `Publisher.publish`. */
  publish(records: readonly Outgoing[], compress?: boolean): Promise<readonly Acknowledgement[]>
  /** Makes the group's offset a part of the transaction. No member and no generation is looked at. */
  sendOffset(groupId: string, entry: CommitEntry): Promise<void>
  commit(): Promise<void>
}

export interface CommittedOffset extends TopicPartition {
  /** -1 where the group has none. */
  readonly offset: bigint
  readonly metadata: string | null
}

export interface LogRange extends TopicPartition {
  /** The first offset that is still there. */
  readonly low: bigint
  /** The offset the next record will get. */
  readonly high: bigint
}

export interface TopicSettings {
  readonly cleanupPolicy: string | undefined
  /** ms; -1 is for ever. */
  readonly retentionMs: number | undefined
  /** Bytes. */
  readonly maxMessageBytes: number | undefined
}

export interface NewTopic {
  readonly topic: string
  readonly partitions: number
  readonly config: Readonly<Record<string, string>>
}

export interface TopicAdmin {
  connect(): Promise<void>
  disconnect(): Promise<void>
  /** Tells clusters apart: the same group on two clusters is two groups. */
  clusterId(): Promise<string>
  /** Partition count by topic; a topic that does not exist is not in the answer. */
  partitions(topics: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** Settings by topic. Rejects where the cluster does not let us look. */
  settings(topics: readonly string[]): Promise<ReadonlyMap<string, TopicSettings>>
  listTopics(): Promise<readonly string[]>
  createTopics(topics: readonly NewTopic[]): Promise<void>
  committed(groupId: string, topics: readonly string[]): Promise<readonly CommittedOffset[]>
  ranges(topic: string): Promise<readonly LogRange[]>
  /** For each partition the offset of the first record at or after `time` (ms since the epoch), else the log's end. */
  offsetsAt(topic: string, time: number): Promise<ReadonlyMap<number, bigint>>
}

export interface Driver {
  /** The name of the client, for messages. */
  readonly client: string
  /** A fake broker brings its own clock. */
  readonly clock: Clock | undefined
  /** So does one whose tests are told again by a seed. */
  readonly random?: Random | undefined
  /** Stands for the process that the client runs in, where a fake broker plays several in one. */
  readonly process?: object | undefined
  consumer(options: GroupConsumerOptions, listener: GroupListener): GroupConsumer
  publisher(): Publisher
  /** Connects when it takes over. */
  /** `offset`: the one that its transactions move, where it is known; taking over makes sure that it can be read. */
  transactor(transactionalId: string, offset?: TopicPartition & { readonly groupId: string }): Transactor
  admin(): TopicAdmin
  /** What an error of a connection means and what mends it; undefined where the settings of the client have no part in it. */
  explainConnect?(error: unknown): string | undefined
  /** Whether the error says that the record is too large for its topic. */
  isTooLarge(error: unknown): boolean
  /** Whether the error says that the transactional id has another owner by now, or that the broker gave the transaction up. */
  isFenced(error: unknown): boolean
}

export interface DriverTools {
  readonly clock: Clock
  readonly logger: Logger
}
