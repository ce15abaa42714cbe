import type { ClassifyOption } from '../classify'
import type { MetricHooks } from '../observe'
import type { Logger } from '../ports'
import type { BatchHandler, Handler } from '../record'
import type { Topology, TopologyInput } from '../topology'
import type { Decode } from './decode-types'
import type { KafkaClient } from './options'
import type { StandardSchema } from './standard-schema'

export interface BatchSettings {
  readonly handler: BatchHandler
  readonly maxRecords: number
  readonly maxBytes: number
  /** 0: whatever is there goes at once. */
  readonly lingerMs: number
}

/** The options, checked, with every default filled in and every duration in ms. Frozen. */
export interface Settings {
  readonly kafka: KafkaClient
  readonly groupId: string
  readonly topics: readonly string[]
  /** Main topics, tiers and dead letter topics, with their names. */
  readonly topology: Topology
  /** What `topology` was built from: to build it again with the former tiers that are found at start. */
  readonly topologyInput: TopologyInput
  /** With `unknownErrors`, for `createClassifier`, which also needs a clock and somebody to tell of problems. */
  readonly classify: ClassifyOption | undefined
  readonly unknownErrors: 'dead-letter' | 'retry'
  /** Undefined where records are handled in batches. */
  readonly handler: Handler | undefined
  /** Undefined where records are handled one by one. */
  readonly batch: BatchSettings | undefined
  readonly ordering: 'partition' | 'key' | 'unordered'
  readonly concurrency: number
  /** `tries` is the number of extra tries; 0 where there are none. */
  readonly immediate: { readonly tries: number; readonly delayMs: number }
  /** A time in ms since the epoch where a `Date` was given. */
  readonly startFrom: 'earliest' | 'latest' | number
  readonly handlerTimeoutMs: number
  readonly shutdownTimeoutMs: number
  readonly publishTimeoutMs: number
  readonly delivery: 'at-least-once' | 'exactly-once'
  readonly commitIntervalMs: number
  readonly deadlineMs: number | undefined
  /** When a dependency counts as down, and how often it is tried then. */
  readonly outage: {
    readonly failures: number
    readonly withinMs: number
    readonly probeMs: number
    readonly maxProbeMs: number
  }
  /** `share` is 0 to 1. Undefined where there is no limit. */
  readonly deadLetterLimit: { readonly share: number; readonly burst: number; readonly withinMs: number } | undefined
  /** False: crash loops are not looked for. */
  readonly crashLimit: number | false
  readonly topicSetup: 'verify' | 'create' | 'warn'
  readonly sameGroupInProcess: 'refuse' | 'allow'
  readonly release: string | undefined
  readonly hooks: readonly MetricHooks[]
  readonly logger: Logger
  readonly sessionTimeoutMs: number
  readonly heartbeatIntervalMs: number
  readonly rebalanceTimeoutMs: number
  /** For the main topics. */
  readonly maxBufferedBytes: number
  /** The same for each tier. */
  readonly maxWaitingBytes: number
  readonly maxBufferedRecords: number
  /** `json` where a schema was given without a decode; undefined where nothing is to be decoded. */
  readonly decode: 'json' | Decode | undefined
  readonly schema: StandardSchema | undefined
  /** What is legal, and yet seldom meant: one line each, for the log at start. */
  readonly warnings: readonly string[]
}
