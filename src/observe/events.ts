/**
 * One union of everything that can be seen from outside. The same events reach metric hooks, `consumer.on()` and the
 * log. Offsets are decimal text, times are ms: every event can be given to JSON.stringify. No event carries a payload.
 */

/** `main`, or the canonical delay of a retry tier (`1m`). */
export type TierName = string

export interface At {
  readonly topic: string
  readonly partition: number
  readonly offset: string
}

interface EventShapes {
  /** A handler call has ended. `because` is the classifier's reason where it failed. */
  attempt: At & {
    tier: TierName
    originalTopic: string
    attempt: number
    tryInAttempt: number
    outcome: 'ok' | 'retry' | 'dead-letter' | 'held' | 'again' | 'timeout'
    because?: string
    errorClass?: string
    /** How long the handler took, ms. */
    durationMs: number
    /** Retries only: start minus due time, ms. */
    latenessMs?: number
    /** With `batchHandler`: how many records the call was given. */
    batch?: number
  }
  /** A failed record stands on its retry topic, acknowledged by all in-sync replicas. `error`: class and message. */
  retried: At & { tier: TierName; to: string; attempt: number; dueAt: number; because: string; error: string }
  /** A failed record stands on its dead letter topic, acknowledged by all in-sync replicas. */
  deadLettered: At & { tier: TierName; to: string; attempt: number; reason: string; because: string; error: string }
  /** A record was passed over without a handler call: another group's, or finished before. */
  skipped: At & { tier: TierName; why: 'other-group' | 'joined' | 'done'; group?: string }
  /** Headers that could not be read, and what was done instead. */
  envelope: At & { tier: TierName; problems: readonly string[] }
  /** One request of copies was acknowledged. */
  published: { records: number; topics: readonly string[]; durationMs: number }
  /** A publish failed; it is tried again after `retryInMs`, and the offsets wait. */
  publishFailed: { records: number; topics: readonly string[]; error: string; tries: number; retryInMs: number }
  committed: { tier: TierName; partitions: number; durationMs: number }
  /**
   * Exactly-once only: a transaction was refused, because somebody else had taken the partition over or the broker had given it
   * up. Nothing of it counts; what was to be in it goes into another one, unless the partition is gone.
   */
  fenced: { tier: TierName; topic: string; partition: number }
  /** A commit was refused; the offsets are chosen anew. */
  commitFailed: { tier: TierName; partitions: number; error: string }
  /**
   * The metadata of a committed offset is not ours, or cannot be read: what another member handled beyond the offset is
   * not known, and is handled again. `length` in characters.
   */
  metadata: At & { tier: TierName; length: number }
  /**
   * The last owner of the partition has died, or was cut off, without a word: the `records` from the committed offset on may
   * have been the cause, and run one at a time. `suspects`: how many of them ran, by themselves, at a death.
   */
  unclean: At & { tier: TierName; records: number; suspects: number }
  /** So many processes died while the record was at work: it becomes a dead letter, and its handler is not called. */
  crashLoop: At & { tier: TierName; deaths: number }
  /** A new generation. `dropped` records were waiting here and go to their new owner. */
  rebalanced: { tier: TierName; assigned: number; added: number; removed: number; kept: number; dropped: number }
  /** A kept partition turned out to have been somebody else's meanwhile, and was started anew at the broker's offset. */
  reopened: { tier: TierName; topic: string; partition: number; ours: string; broker: string }
  /**
   * Records that were deleted from the log before they were read. `from` is `?` where the group's offset is not known any
   * more: kafkajs writes over it when it finds it outside the log.
   */
  gone: { tier: TierName; topic: string; partition: number; from: string; to: string }
  /**
   * The batch at `offset` cannot be decoded (a codec that is not registered, bytes that are damaged). Its partition waits,
   * uncommitted, and is looked at again in about `againInMs`; the others go on. `forMs`: since it was found first.
   */
  unreadable: At & { tier: TierName; error: string; forMs: number; againInMs: number }
  /** It could be read at last, or has been deleted, and its partition goes on. */
  readable: At & { tier: TierName; forMs: number }
  /** A handler finished after its partition had moved on; its result is not used. */
  late: At & { tier: TierName; outcome: 'ok' | 'failed' }
  /** A handler did not settle within its time-out and grace, or within the shutdown. It may still have effects. */
  abandoned: At & { tier: TierName; attempt: number; runningMs: number; during: 'handler-timeout' | 'shutdown' }
  /** Depth of one lane: sent when it fills up, has room again or is empty, and at most once a second while it works. */
  lane: {
    tier: TierName
    topic: string
    partition: number
    /** Records in memory that are not settled. */
    held: number
    /** Of these, in a handler now; with `batchHandler` batches. */
    running: number
    bytes: number
    full: boolean
  }
  crashed: { tier: TierName; error: string; restarting: boolean }
  restarted: { tier: TierName }
  started: { groups: readonly string[]; durationMs: number }
  stopped: { durationMs: number; abandoned: readonly At[] }
  /** A dependency counts as down: records that need it are set aside, and their partitions wait. */
  held: { dependency: string; because: string; failures: number }
  /** A probe has succeeded: the partitions that waited go on. */
  released: { dependency: string; heldMs: number; lanes: number; probes: number }
  /** `deadLetterLimit` is reached: nothing starts any more until somebody says so. */
  halted: { deadLetters: number; of: number; withinMs: number }
  paused: { by: 'user' | 'handler'; topic?: string; partition?: number }
  resumed: { by: 'user' | 'handler'; topic?: string; partition?: number }
  /** Anything else that failed and was contained: a classifier, a hook, a listener, a look-up that is tried again. */
  problem: { where: string; error: string }
}

export type EventType = keyof EventShapes
/** The event of one type, as hooks and listeners get it. */
export type EventOf<E extends EventType> = Readonly<EventShapes[E]> & { readonly type: E; readonly groupId: string }
export type RetrylineEvent = { [E in EventType]: EventOf<E> }[EventType]
export type Fields<E extends EventType> = EventShapes[E]

/**
 * Metric hooks: any of these methods, each called synchronously with one event, in the order in which things happen.
 * A hook that throws (or returns a promise that rejects) is reported as `problem` and changes nothing. An event that
 * no hook and no listener asks for is not even made.
 */
export type MetricHooks = {
  readonly [E in EventType]?: (event: EventOf<E>) => void
} & {
  /** Gets every event, after the method of its own name. */
  readonly all?: (event: RetrylineEvent) => void
}

export const EVENT_TYPES = [
  'attempt',
  'retried',
  'deadLettered',
  'skipped',
  'envelope',
  'published',
  'publishFailed',
  'committed',
  'commitFailed',
  'fenced',
  'metadata',
  'unclean',
  'crashLoop',
  'rebalanced',
  'reopened',
  'gone',
  'unreadable',
  'readable',
  'late',
  'abandoned',
  'lane',
  'crashed',
  'restarted',
  'started',
  'stopped',
  'held',
  'released',
  'halted',
  'paused',
  'resumed',
  'problem',
] as const satisfies readonly EventType[]
