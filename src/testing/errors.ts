/**
 * Errors as those of kafkajs 2.2.4: names, messages and fields are what others recognise them by, and `instanceof`, for
 * which each class descends from kafkajs's own of that name. So never ask here whether an error is one of a class that
 * has classes under it: ask for its name.
 */
import { RetrylineError } from '../errors'
import { PROTOCOL_ERRORS, type ProtocolErrorType } from './error-codes'
import { descendFromKafkajs } from './kafkajs-classes'

interface Options {
  retriable?: boolean
  cause?: unknown
}

const textOf = (e: Error | string): string => (typeof e === 'string' ? e : e.message)

export class KafkaJSError extends Error {
  readonly retriable: boolean
  declare readonly helpUrl?: string
  declare readonly cause?: Error

  constructor(e: Error | string, { retriable = true, cause }: Options = {}) {
    super(textOf(e), { cause })
    // Only now: a test in which nothing fails needs not load kafkajs.
    descend()
    this.name = 'KafkaJSError'
    this.retriable = retriable
  }
}

export class KafkaJSNonRetriableError extends KafkaJSError {
  constructor(e: Error | string, { cause }: Options = {}) {
    super(e, { retriable: false, cause })
    this.name = 'KafkaJSNonRetriableError'
  }
}

export class KafkaJSNotImplemented extends KafkaJSNonRetriableError {
  constructor(e: string) {
    super(e)
    this.name = 'KafkaJSNotImplemented'
  }
}

export class KafkaJSProtocolError extends KafkaJSError {
  readonly type: ProtocolErrorType
  readonly code: number

  constructor(type: ProtocolErrorType) {
    const [code, retriable, message] = PROTOCOL_ERRORS[type]
    super(message, { retriable })
    this.name = 'KafkaJSProtocolError'
    this.type = type
    this.code = code
  }
}

export class KafkaJSOffsetOutOfRange extends KafkaJSProtocolError {
  constructor(
    readonly topic: string,
    readonly partition: number,
  ) {
    super('OFFSET_OUT_OF_RANGE')
    this.name = 'KafkaJSOffsetOutOfRange'
  }
}

export class KafkaJSCreateTopicError extends KafkaJSProtocolError {
  constructor(
    type: ProtocolErrorType,
    readonly topic: string,
  ) {
    super(type)
    this.name = 'KafkaJSCreateTopicError'
  }
}

export class KafkaJSAggregateError extends Error {
  constructor(
    message: string,
    readonly errors: Error[],
  ) {
    super(message)
    descend()
    this.name = 'KafkaJSAggregateError'
  }
}

export class KafkaJSNumberOfRetriesExceeded extends KafkaJSNonRetriableError {
  constructor(
    e: Error,
    readonly retryCount: number,
    readonly retryTime: number,
  ) {
    super(e, { cause: e })
    this.name = 'KafkaJSNumberOfRetriesExceeded'
    this.stack = `${this.name}\n  Caused by: ${e.stack ?? ''}`
  }
}

export class KafkaJSConnectionError extends KafkaJSError {
  constructor(
    e: string,
    readonly broker: string,
    readonly code?: string,
  ) {
    super(e)
    this.name = 'KafkaJSConnectionError'
  }
}

export class KafkaJSConnectionClosedError extends KafkaJSConnectionError {
  constructor(
    readonly host: string,
    readonly port: number,
  ) {
    super('Closed connection', `${host}:${port}`)
    this.name = 'KafkaJSConnectionClosedError'
  }
}

export class KafkaJSRequestTimeoutError extends KafkaJSError {
  constructor(
    apiName: string,
    readonly broker: string,
    readonly createdAt: number,
    readonly pendingDuration: number,
  ) {
    super(`Request ${apiName} timed out`)
    this.name = 'KafkaJSRequestTimeoutError'
  }
}

export class KafkaJSMetadataNotLoaded extends KafkaJSError {
  constructor(e: string) {
    super(e)
    this.name = 'KafkaJSMetadataNotLoaded'
  }
}

export class KafkaJSTopicMetadataNotLoaded extends KafkaJSMetadataNotLoaded {
  constructor() {
    super('Topic metadata not loaded')
    this.name = 'KafkaJSTopicMetadataNotLoaded'
  }
}

export class KafkaJSStaleTopicMetadataAssignment extends KafkaJSError {
  constructor(
    e: string,
    readonly topic: string,
    readonly unknownPartitions: number[],
  ) {
    super(e)
    this.name = 'KafkaJSStaleTopicMetadataAssignment'
  }
}

export class KafkaJSBrokerNotFound extends KafkaJSError {
  constructor(e: string, options: Options = {}) {
    super(e, options)
    this.name = 'KafkaJSBrokerNotFound'
  }
}

export class KafkaJSNoBrokerAvailableError extends KafkaJSError {
  constructor() {
    super('No broker available')
    this.name = 'KafkaJSNoBrokerAvailableError'
  }
}

export class KafkaJSGroupCoordinatorNotFound extends KafkaJSError {
  constructor(e: string) {
    super(e)
    this.name = 'KafkaJSGroupCoordinatorNotFound'
  }
}

export interface DeleteRecordsFailure {
  partition: number
  offset: string
  error: KafkaJSError
}

export class KafkaJSDeleteTopicRecordsError extends KafkaJSError {
  constructor(readonly partitions: DeleteRecordsFailure[]) {
    super('Error while deleting records', { retriable: partitions.every(({ error }) => error.retriable) })
    this.name = 'KafkaJSDeleteTopicRecordsError'
  }
}

export interface DeleteGroupsResult {
  groupId: string
  errorCode: number
  error?: KafkaJSProtocolError
}

export class KafkaJSDeleteGroupsError extends KafkaJSError {
  constructor(
    e: string,
    readonly groups: DeleteGroupsResult[],
  ) {
    super(e)
    this.name = 'KafkaJSDeleteGroupsError'
  }
}

export class KafkaJSTimeout extends KafkaJSNonRetriableError {
  constructor(e: string) {
    super(e)
    this.name = 'KafkaJSTimeout'
  }
}

export class KafkaJSLockTimeout extends KafkaJSTimeout {
  constructor(e: string) {
    super(e)
    this.name = 'KafkaJSLockTimeout'
  }
}

/** All of them, by kafkajs's names. */
export const ERROR_CLASSES = {
  KafkaJSError,
  KafkaJSNonRetriableError,
  KafkaJSNotImplemented,
  KafkaJSProtocolError,
  KafkaJSOffsetOutOfRange,
  KafkaJSCreateTopicError,
  KafkaJSAggregateError,
  KafkaJSNumberOfRetriesExceeded,
  KafkaJSConnectionError,
  KafkaJSConnectionClosedError,
  KafkaJSRequestTimeoutError,
  KafkaJSMetadataNotLoaded,
  KafkaJSTopicMetadataNotLoaded,
  KafkaJSStaleTopicMetadataAssignment,
  KafkaJSBrokerNotFound,
  KafkaJSNoBrokerAvailableError,
  KafkaJSGroupCoordinatorNotFound,
  KafkaJSDeleteTopicRecordsError,
  KafkaJSDeleteGroupsError,
  KafkaJSTimeout,
  KafkaJSLockTimeout,
}

let descended = false

function descend(): void {
  if (descended) return
  descended = true
  descendFromKafkajs(ERROR_CLASSES)
}

export const protocolError = (type: ProtocolErrorType): KafkaJSProtocolError => new KafkaJSProtocolError(type)

export const codeOf = (type: ProtocolErrorType): number => PROTOCOL_ERRORS[type][0]

/** The `type` of a protocol error, `undefined` for any other. */
export function typeOf(e: unknown): string | undefined {
  const type = (e as { type?: unknown } | null | undefined)?.type
  return typeof type === 'string' ? type : undefined
}

export const nameOf = (e: unknown): string => {
  const name = (e as { name?: unknown } | null | undefined)?.name
  return typeof name === 'string' ? name : ''
}

export const isRebalancing = (e: unknown): boolean =>
  ['REBALANCE_IN_PROGRESS', 'NOT_COORDINATOR_FOR_GROUP', 'ILLEGAL_GENERATION'].includes(typeOf(e) ?? '')

export const isStaleMetadata = (e: unknown): boolean =>
  ['UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE', 'NOT_LEADER_FOR_PARTITION'].includes(typeOf(e) ?? '')

/** Asked for something that the fake does not have: better than an answer that kafkajs would not give. */
export const notFaked = (what: string): RetrylineError =>
  new RetrylineError(
    'RETRYLINE_TESTING',
    `${what} is not faked: use a real broker for this test (see NOT-FAKED.md of retryline/testing)`,
  )
