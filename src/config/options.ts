/**
 * The options of `createResilientConsumer`: what each means, in which unit, and what it is when left out. All of them
 * are checked at construction, at once; see `resolve.ts`.
 *
 * A duration is text with a unit (`'200ms'`, `'30s'`, `'5m'`, `'1h'`, `'2d'`) or a whole number of ms.
 */
import type { ClassifyOption } from '../classify'
import type { MetricHooks } from '../observe'
import type { Logger } from '../ports'
import type { BatchHandler, Handler } from '../record'
import type { CustomNaming, Duration, Schedule } from '../topology'
import type { Decode } from './decode-types'
import type { SchemaOutput, StandardSchema } from './standard-schema'

/** Bytes: a number, or text with a unit (`'64MiB'`, `'64MB'`, `'512KiB'`; KiB is 1024, kB is 1000). */
export type SizeOption = string | number

/** Anything that makes consumers, producers and admins as a kafkajs client does: `new Kafka(…)`, or a fake broker. */
export interface KafkaClient {
  consumer(...args: never[]): unknown
  producer(...args: never[]): unknown
  admin(...args: never[]): unknown
}

/**
 * `by-topic`: `orders.retry.1m`, `orders.dlq`. `by-topic-and-group`: `orders.billing.retry.1m`, `orders.billing.dlq`.
 * Functions get the main topic, the canonical delay (`1m`, never `60s`) and the group.
 */
export type TopicNames = 'by-topic' | 'by-topic-and-group' | CustomNaming

/** The type of `ctx.value`: what the schema gives out; without a schema, what `decode` returns. */
export type ValueOf<V, S> = [S] extends [StandardSchema] ? SchemaOutput<S> : V

/**
 * `V` is what `decode` returns, `S` the schema; both are inferred. Written out, `ResilientConsumerOptions<Order>` is
 * enough: then `ctx.value` is an `Order`, and a `schema` must give one out.
 */
export interface ResilientConsumerOptions<
  V = unknown,
  S extends StandardSchema | undefined = StandardSchema<V> | undefined,
> {
  /** Your own kafkajs client (brokers, TLS and SASL are set there), or a fake broker of `retryline/testing`. */
  readonly kafka: KafkaClient
  /** The consumer group of the main topics; the groups of the retry topics are named after it (`billing.retry.1m`). */
  readonly groupId: string
  /** The main topic, or several. Each has retry topics and a dead letter topic of its own. */
  readonly topic: string | readonly string[]
  /**
   * The waits between attempts: `['1m', '10m', '1h']`, or `exponential({ … })`. Each distinct wait is a retry topic.
   * At most 10 attempts (9 waits), unless `allowManyAttempts` is set.
   */
  readonly schedule: Schedule
  /**
   * What is done with a record: any kafkajs `eachMessage` handler. Throw to fail; `RetryableError` and
   * `NonRetryableError` say how, other errors are classified. It may be called more than once for a record. Either this or
   * `batchHandler` must be given.
   */
  readonly handler?: Handler<ValueOf<V, S>>
  /**
   * In place of `handler`: takes many records of one partition at once, on the main topics and on every tier. Name those that
   * failed with `ctx.fail(message, error)`; only they are retried or dead-lettered. `concurrency` then counts batches, and
   * `handlerTimeout` bounds one call.
   */
  readonly batchHandler?: BatchHandler<ValueOf<V, S>>
  /**
   * How large a batch for `batchHandler` gets: at most `maxRecords` (1 to 10 000, default 100) and `maxBytes` (from 1 KiB,
   * default `'1MiB'`; one record may be larger); and how long one that is not full waits for more (`linger`, up to 1 min,
   * default 0).
   */
  readonly batch?: { readonly maxRecords?: number; readonly maxBytes?: SizeOption; readonly linger?: Duration }
  /** Rules, in the order in which they are asked, or a function; asked before the built-in table. Default: none. */
  readonly classify?: ClassifyOption
  /** What becomes of an error that no rule knows. Default `'dead-letter'`. */
  readonly unknownErrors?: 'dead-letter' | 'retry'
  /**
   * Which records wait for which, on the main topic and on the tiers. `'partition'` (default): first attempts of one
   * partition run one at a time, in order. `'key'`: so for each key, different keys side by side. `'unordered'`: as
   * many side by side as `concurrency` allows. In every mode a retried record comes after what followed it.
   */
  readonly ordering?: 'partition' | 'key' | 'unordered'
  /** Handlers at once on the main topics, and as many again on each tier. 1 to 1000, default 16. */
  readonly concurrency?: number
  /**
   * Quick tries inside an attempt, before the record goes to a retry topic: up to `tries` more (1 to 5), `delay` apart
   * (at most 5 s). The lane waits meanwhile. Only errors that are worth a retry are tried again, and `handlerTimeout`
   * bounds all tries of an attempt together. Default: none.
   */
  readonly immediate?: { readonly tries: number; readonly delay: Duration }
  /**
   * Where to begin on the main topics if the group has no committed offset; otherwise it has no effect. Tiers always
   * begin at the earliest. A `Date` begins at the first record of that time or later. Default `'earliest'`.
   */
  readonly startFrom?: 'earliest' | 'latest' | Date
  /**
   * How long an attempt may take. Then `ctx.signal` is aborted, and once the handler settles (or after a short grace)
   * the record is retried with the reason `timeout`. 10 ms to 24 h, default `'30s'`.
   */
  readonly handlerTimeout?: Duration
  /**
   * How long `stop()` waits for running handlers before it aborts their signals and leaves them, uncommitted. Keep it
   * below the time that your platform gives a process to end (30 s on Kubernetes). 0 to 1 h, default `'20s'`.
   */
  readonly shutdownTimeout?: Duration
  /**
   * How long to wait for one acknowledgement of copies before they are sent again. The default, `'3m'`, is more than
   * kafkajs itself needs to give up: 4 tries of 30 s each. A shorter one gives up on requests that may still succeed: the cost
   * is a copy that stands twice, never one that is lost. 1 s to 1 h.
   */
  readonly publishTimeout?: Duration
  /**
   * What becomes of a failure of ours in the middle of passing a record on. `'at-least-once'` (default): its copy may stand
   * twice. `'exactly-once'`: copies on retry and dead letter topics, and what a handler gives to `ctx.send()`, go into one
   * Kafka transaction together with the offsets, so that readers with `read_committed` see each of them once. It costs a
   * producer for each partition and some ms for each failed record, and covers no effect outside Kafka: see
   * `docs/exactly-once.md`. Refused beside `batchHandler`.
   */
  readonly delivery?: 'at-least-once' | 'exactly-once'
  /** Settled offsets are committed at most so long after the first of them. 10 ms to 60 s, default `'200ms'`. */
  readonly commitInterval?: Duration
  /**
   * The time a record has in all, from its first failure. An attempt that would be due later is not waited for: the
   * record goes to the dead letter topic with the reason `deadline`. Default: none.
   */
  readonly deadline?: Duration
  /**
   * When a dependency that handlers name with `outage()` counts as down: after so many `failures` (default 5) `within` a time
   * (`'10s'`). Then the partitions that need it wait, uncommitted, and one record at a time probes: first after `probe`
   * (`'1s'`), then later and later up to `maxProbe` (`'30s'`).
   */
  readonly outage?: {
    readonly failures?: number
    readonly within?: Duration
    readonly probe?: Duration
    readonly maxProbe?: Duration
  }
  /**
   * Stops handling where more than `burst` records, and more than the `share` (0 to 1) of all that came to their end `within` a
   * time (default `'1m'`), became dead letters, as after a bad deploy. It goes on at a restart or `resume()`. Default: none.
   */
  readonly deadLetterLimit?: { readonly share: number; readonly burst: number; readonly within?: Duration }
  /**
   * After so many deaths of a process while a record was at work (out of memory, a native crash, `process.exit`) the record
   * becomes a dead letter with the reason `crash-loop`, and its handler is not called again. 2 to 100, default 3; `false`: never.
   */
  readonly crashLimit?: number | false
  /**
   * `'verify'` (default): `start()` fails if a topic is missing or set up badly, and says how to mend each.
   * `'create'`: missing retry and dead letter topics are made (never the main topic); for development.
   * `'warn'`: problems are logged; for clusters that do not let us look. A missing topic still fails the start.
   */
  readonly topicSetup?: 'verify' | 'create' | 'warn'
  /**
   * How retry and dead letter topics are named. `'by-topic'` (default): shared by the groups that read the main topic;
   * each handles its own records and skips the others'. `'by-topic-and-group'`: each group has its own. Or functions.
   */
  readonly topicNames?: TopicNames
  /**
   * A second consumer of the same group on the same cluster in this process is refused by `start()`, since it is nearly
   * always a mistake. `'allow'` where it is not (a test of a rebalance, say); each then needs a Kafka client of its own.
   * Default `'refuse'`.
   */
  readonly sameGroupInProcess?: 'refuse' | 'allow'
  /** Names that this group had before: waiting records of those are taken over instead of skipped. Default: none. */
  readonly formerGroupIds?: readonly string[]
  /**
   * Waits that were in the schedule before and whose retry topics may still hold records of ours. Needed only where
   * the cluster does not let us list topics or `topicNames` are your own functions; else they are found by name.
   */
  readonly formerTiers?: readonly Duration[]
  /** The version of your software that runs, written to each failed record (`x-release`). At most 128 characters. */
  readonly release?: string
  /** Metric hooks, one or several. What they throw is reported and changes nothing. Default: none. */
  readonly hooks?: MetricHooks | readonly MetricHooks[]
  /** Default: one line of text to standard error for each thing worth it, from `info` up (`consoleLogger()`). */
  readonly logger?: Logger
  /**
   * After so long without a heartbeat the broker gives our partitions to others. Heartbeats go on while handlers run,
   * so it need not be longer than they take. 1 s to 30 min, default `'30s'`.
   */
  readonly sessionTimeout?: Duration
  /** Time between heartbeats: below `sessionTimeout`, best a third of it or less. 100 ms to 10 min, default `'3s'`. */
  readonly heartbeatInterval?: Duration
  /** How long the broker waits for members to join again in a rebalance. 1 s to 30 min, default `'60s'`. */
  readonly rebalanceTimeout?: Duration
  /**
   * Bytes of records in memory, for the main topics and again for each tier. From 1 KiB; default `'64MiB'` for the main topics
   * and `'24MiB'` for each tier.
   */
  readonly maxBufferedBytes?: SizeOption
  /** Records in memory, for the main topics and again for each tier. 1 to 1 000 000, default 50 000. */
  readonly maxBufferedRecords?: number
  /**
   * Allows a schedule of more than 10 attempts (up to 100). Each distinct wait is a topic and a consumer group, and a
   * record that fails ten times seldom succeeds at the eleventh: set it only on purpose.
   */
  readonly allowManyAttempts?: boolean
  /**
   * Fills `ctx.value`. `'json'`: strict UTF-8, then JSON; a tombstone is null. A function: see `Decode`. What cannot
   * be decoded goes to the dead letter topic as `undecodable`, without a handler call. Default: `'json'` where there
   * is a `schema`, otherwise `ctx.value` is `undefined`.
   */
  readonly decode?: 'json' | Decode<V>
  /**
   * A Standard Schema (zod, valibot, arktype and others) for the decoded value; `ctx.value` is what it gives out. It
   * sees tombstones too, as null: a schema that does not accept null sends them to the dead letter topic.
   */
  readonly schema?: S
}
