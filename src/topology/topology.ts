/** One distinct delay, the retry topics that have it (one for each main topic), and the group that reads them. */
export interface Tier {
  /** The canonical delay: `1m`. */
  readonly name: string
  readonly delayMs: number
  readonly groupId: string
  /** The lowest attempt that the schedule makes on this tier; 2 for a former tier. */
  readonly firstAttempt: number
  /** The highest; `maxAttempts` for a former tier. */
  readonly lastAttempt: number
  /** Not of the schedule any more: read until it is empty, never written to. */
  readonly former: boolean
  /** Retry topic by main topic. A former tier may lack some main topics. */
  readonly topics: ReadonlyMap<string, string>
}

export interface TopicRole {
  readonly topic: string
  readonly role: 'main' | 'retry' | 'dead-letter'
  /** The main topic it belongs to (itself, for a main topic). */
  readonly main: string
  /** Of a retry topic. */
  readonly tier: Tier | undefined
}

/** The chain main -> tiers -> dead letter topic -> end, built once and never changed. */
export interface Topology {
  readonly groupId: string
  /** Groups whose waiting records this one handles as its own. */
  readonly formerGroupIds: ReadonlySet<string>
  /** The main topics. */
  readonly topics: readonly string[]
  readonly maxAttempts: number
  /** 0 to 1: by what part of itself a delay may be made longer. */
  readonly jitter: number
  /** How long after its first failure a record may still be retried, ms. */
  readonly deadlineMs: number | undefined
  /** One for each distinct delay, in order of first use; then the former ones, shortest first. */
  readonly tiers: readonly Tier[]
  /** The tier on which this attempt is made; `undefined` for the first, and past the last. */
  tierOfAttempt(attempt: number): Tier | undefined
  /**
   * The tier for an attempt that must wait at least `afterMs`: its own where that is long enough, else the shortest of a
   * later attempt that is, else the longest of them. `undefined` past the last attempt.
   */
  tierForDelay(afterMs: number, attempt: number): Tier | undefined
  /** Throws for a topic or a tier that is not of this topology: a bug of the caller, never an effect of a record. */
  retryTopic(main: string, tier: Tier): string
  deadLetterTopic(main: string): string
  /** Whose retry topic this is; `undefined` for any other topic. */
  origin(topic: string): { readonly main: string; readonly tier: Tier } | undefined
  roleOf(topic: string): TopicRole | undefined
  /** Every topic that is read or written: main topics, retry topics (former ones too), dead letter topics. */
  allTopics(): readonly TopicRole[]
}
