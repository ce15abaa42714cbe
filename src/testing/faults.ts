/**
 * Faults that a test asks for: each is waiting -> caught by the first request that fits -> over.
 *
 * `fail`: the broker refuses. `hold`: the request is on its way (or its answer is) until released. `drop`: the broker
 * does it and the answer is lost. A fault that is never caught does nothing; `every` catches until it is stopped.
 */
import { RetrylineError } from '../errors'
import { PROTOCOL_ERRORS, type ProtocolErrorType } from './error-codes'

/** What a request is for. `offsets` is OffsetFetch, `positions` ListOffsets, `coordinator` FindCoordinator, `txnOffsets` TxnOffsetCommit; `markers` is what the broker
 * itself writes where a transaction ends. */
export type RequestKind =
  | 'publish'
  | 'commit'
  | 'fetch'
  | 'join'
  | 'sync'
  | 'heartbeat'
  | 'leave'
  | 'metadata'
  | 'coordinator'
  | 'offsets'
  | 'positions'
  | 'initProducer'
  | 'addPartitions'
  | 'addOffsets'
  | 'txnOffsets'
  | 'endTransaction'
  | 'markers'
  | 'admin'

export interface RequestFilter {
  /** The node that it goes to. */
  node?: number
  topic?: string
  partition?: number
  group?: string
  transactionalId?: string
}

export interface RequestAbout {
  readonly kind: RequestKind
  readonly node?: number
  readonly group?: string
  readonly transactionalId?: string
  readonly topics?: readonly { topic: string; partitions?: readonly number[] }[]
}

export type FaultError = Error | ProtocolErrorType | 'CONNECTION_CLOSED' | 'CONNECTION_REFUSED'

export interface Held {
  /** Resolves when a request has been caught. */
  readonly caught: Promise<void>
  /** Lets it go on. Before it is caught: takes the fault back. */
  release(): void
  /** Refuses it instead. */
  fail(error: FaultError): void
}

export interface NextRequest {
  /** The broker refuses: a protocol error by its type, a broken connection, or any error object. */
  fail(error: FaultError): void
  /** The request (by default) or its answer is held until released. */
  hold(what?: 'request' | 'answer'): Held
  /** The broker does what is asked; the answer is lost with the connection. */
  drop(): void
}

export interface EveryRequest {
  fail(error: FaultError): { stop(): void }
}

export type Fault =
  | { readonly do: 'fail'; readonly error: FaultError; readonly where: RequestFilter }
  | { readonly do: 'drop'; readonly where: RequestFilter }
  | {
      readonly do: 'hold'
      readonly what: 'request' | 'answer'
      readonly where: RequestFilter
      readonly released: Promise<FaultError | undefined>
      readonly onCaught: () => void
    }

interface Waiting {
  readonly kind: RequestKind
  readonly where: RequestFilter
  readonly fault: Fault
  readonly once: boolean
}

export const partitionFits = (where: RequestFilter, topic: string, partition: number): boolean =>
  (where.topic === undefined || where.topic === topic) &&
  (where.partition === undefined || where.partition === partition)

function fits(where: RequestFilter, about: RequestAbout): boolean {
  if (where.node !== undefined && where.node !== about.node) return false
  if (where.group !== undefined && where.group !== about.group) return false
  if (where.transactionalId !== undefined && where.transactionalId !== about.transactionalId) return false
  if (where.topic === undefined && where.partition === undefined) return true
  return (about.topics ?? []).some(
    ({ topic, partitions }) =>
      (where.topic === undefined || where.topic === topic) &&
      (where.partition === undefined || partitions === undefined || partitions.includes(where.partition)),
  )
}

export const isProtocolError = (error: FaultError): error is ProtocolErrorType =>
  typeof error === 'string' && Object.hasOwn(PROTOCOL_ERRORS, error)

function checked(error: FaultError): FaultError {
  const connection = error === 'CONNECTION_CLOSED' || error === 'CONNECTION_REFUSED'
  if (connection || isProtocolError(error) || (typeof error === 'object' && error !== null)) return error
  throw new RetrylineError(
    'RETRYLINE_TESTING',
    `fail('${String(error)}'): not a protocol error that the fake knows; give one of ` +
      `${Object.keys(PROTOCOL_ERRORS).join(', ')}, CONNECTION_CLOSED, CONNECTION_REFUSED, or an Error`,
  )
}

export class Faults {
  private readonly waiting = new Set<Waiting>()

  /** `onAdded` is told of each new fault: a long poll that stands would never meet it. */
  constructor(private readonly onAdded: (kind: RequestKind) => void) {}

  take(about: RequestAbout): Fault | undefined {
    for (const waiting of this.waiting) {
      if (waiting.kind !== about.kind || !fits(waiting.where, about)) continue
      if (waiting.once) this.waiting.delete(waiting)
      return waiting.fault
    }
    return undefined
  }

  next(kind: RequestKind, where: RequestFilter = {}): NextRequest {
    return {
      fail: (error) => void this.add({ kind, where, once: true, fault: { do: 'fail', error: checked(error), where } }),
      drop: () => void this.add({ kind, where, once: true, fault: { do: 'drop', where } }),
      hold: (what = 'request') => {
        let onCaught = (): void => undefined
        let settle = (_error: FaultError | undefined): void => undefined
        const caught = new Promise<void>((resolve) => (onCaught = resolve))
        const released = new Promise<FaultError | undefined>((resolve) => (settle = resolve))
        const waiting = this.add({
          kind,
          where,
          once: true,
          fault: { do: 'hold', what, where, released, onCaught },
        })
        return {
          caught,
          release: () => {
            this.waiting.delete(waiting)
            settle(undefined)
          },
          fail: (error) => {
            this.waiting.delete(waiting)
            settle(checked(error))
          },
        }
      },
    }
  }

  every(kind: RequestKind, where: RequestFilter = {}): EveryRequest {
    return {
      fail: (error) => {
        const waiting = this.add({ kind, where, once: false, fault: { do: 'fail', error: checked(error), where } })
        return { stop: () => void this.waiting.delete(waiting) }
      },
    }
  }

  /** Takes back all that has met nothing yet. */
  clear(): void {
    this.waiting.clear()
  }

  private add(waiting: Waiting): Waiting {
    this.waiting.add(waiting)
    this.onAdded(waiting.kind)
    return waiting
  }
}
