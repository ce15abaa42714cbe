/**
 * Every error of retryline, by code. An error is recognised by its brand and code, never by `instanceof`: the ESM and
 * the CJS build can both be loaded in one process, and then each has its own classes.
 */

const BRAND: unique symbol = Symbol.for('retryline.error') as never

export type ErrorCode =
  /** The configuration has problems; `problems` lists all of them. */
  | 'RETRYLINE_CONFIG'
  /** A topic is missing or set up in a way that would lose or block records; `problems` lists all, with the mends. */
  | 'RETRYLINE_TOPICS'
  /** Another consumer of this process already uses this group id. */
  | 'RETRYLINE_GROUP_IN_USE'
  /** The call does not fit the state of the consumer (started twice, used after stop). */
  | 'RETRYLINE_STATE'
  /** The broker could not be reached, or refused, while starting. */
  | 'RETRYLINE_CONNECT'
  /** The cluster does not allow the client what it needs; the error says what, on which resource, and to whom. */
  | 'RETRYLINE_FORBIDDEN'
  /** A publish was rejected, timed out or was not acknowledged for every topic-partition. */
  | 'RETRYLINE_PUBLISH'
  /** The value could not be decoded, or does not fit its schema. */
  | 'RETRYLINE_UNDECODABLE'
  /** The handler did not settle within `handlerTimeout`. */
  | 'RETRYLINE_HANDLER_TIMEOUT'
  /** Of a dead letter only: processes died while the record was at work. */
  | 'RETRYLINE_CRASH_LOOP'
  /** Thrown by a handler: try this record again later. */
  | 'RETRYLINE_RETRYABLE'
  /** Thrown by a handler: retrying cannot help. */
  | 'RETRYLINE_NON_RETRYABLE'
  /** Thrown by a handler: a dependency is down, and the record is none the worse for it. */
  | 'RETRYLINE_OUTAGE'
  /** The fake broker was asked for something it does not fake, or its clock cannot move. */
  | 'RETRYLINE_TESTING'

export class RetrylineError extends Error {
  readonly code: ErrorCode
  /** One line for each thing that is wrong: field, value and mend. Empty where the message says it all. */
  readonly problems: readonly string[]
  readonly [BRAND] = true

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown; problems?: readonly string[] }) {
    super(message, options && 'cause' in options ? { cause: options.cause } : undefined)
    this.name = 'RetrylineError'
    this.code = code
    this.problems = options?.problems ?? []
  }
}

/**
 * Throw it from a handler (or give it as a `cause`) to have the record tried again later, whatever the built-in table
 * says of the error behind it.
 */
export class RetryableError extends RetrylineError {
  /**
   * How long to wait at least, as it was given: ms, or text such as `'10m'`, as in the schedule; picks a longer tier of it where
   * there is one. What is no duration is reported as a `problem`, and the record tried again by the schedule: an error that threw
   * while it is made would be taken for the failure itself.
   */
  readonly after: number | string | undefined

  constructor(message: string, options?: { cause?: unknown; after?: number | string }) {
    super('RETRYLINE_RETRYABLE', message, options)
    this.name = 'RetryableError'
    this.after = options?.after
  }
}

/** Throw it from a handler (or give it as a `cause`) to send the record straight to the dead letter topic. */
export class NonRetryableError extends RetrylineError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('RETRYLINE_NON_RETRYABLE', message, options)
    this.name = 'NonRetryableError'
  }
}

/** What `outage()` makes. */
export class OutageError extends RetrylineError {
  /** What is down; records that name the same one wait together. */
  readonly dependency: string

  constructor(dependency: string, options?: { cause?: unknown }) {
    super('RETRYLINE_OUTAGE', `${dependency} is down`, options)
    this.name = 'OutageError'
    this.dependency = dependency
  }
}

export interface Forbidden {
  /** As Kafka's tools name it: `Read`, `Write`, `Describe`, `DescribeConfigs`, `Create`. */
  readonly operation: string
  readonly resourceType: 'topic' | 'group' | 'transactional-id'
  /** One of these was refused; which one, the broker did not say where there are several. */
  readonly resources: readonly string[]
  /** `User:billing`; undefined where the client does not tell its user name. */
  readonly principal: string | undefined
  /** The `kafka-acls.sh` command line that allows it. */
  readonly command: string
}

/** What `RETRYLINE_FORBIDDEN` is: an authorizer of the cluster has refused a request. */
export class ForbiddenError extends RetrylineError implements Forbidden {
  readonly operation: string
  readonly resourceType: Forbidden['resourceType']
  readonly resources: readonly string[]
  readonly principal: string | undefined
  readonly command: string

  constructor(message: string, what: Forbidden, options?: { cause?: unknown }) {
    super('RETRYLINE_FORBIDDEN', message, options)
    this.name = 'ForbiddenError'
    this.operation = what.operation
    this.resourceType = what.resourceType
    this.resources = what.resources
    this.principal = what.principal
    this.command = what.command
  }
}

/**
 * Throw it from a handler to say that something it needs is down: `throw outage('payments', { cause })`. After some of
 * these (option `outage`) the partitions whose records need it wait, uncommitted, and one record at a time probes,
 * instead of all of them going through the retry topics to the dead letter topic.
 */
export function outage(dependency: string, options?: { cause?: unknown }): OutageError {
  return new OutageError(dependency, options)
}

/** Whether `error` is one of ours, from whichever build; with `code`, whether it is that one. Never throws. */
export function isRetrylineError(error: unknown, code?: ErrorCode): error is RetrylineError {
  try {
    return (
      typeof error === 'object' &&
      error !== null &&
      (error as { [BRAND]?: unknown })[BRAND] === true &&
      (code === undefined || (error as RetrylineError).code === code)
    )
  } catch {
    return false
  }
}
