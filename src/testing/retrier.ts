/** kafkajs's retrier on the virtual clock. Its random jitter is left out: a wait is always the middle of its range. */
import type { InnerClock } from './clock'
import { KafkaJSNonRetriableError, KafkaJSNumberOfRetriesExceeded, nameOf } from './errors'

export interface RetryOptions {
  maxRetryTime?: number
  initialRetryTime?: number
  factor?: number
  multiplier?: number
  retries?: number
  restartOnFailure?: (e: Error) => Promise<boolean>
}

export const DEFAULT_RETRY = { maxRetryTime: 30_000, initialRetryTime: 300, multiplier: 2, retries: 5 }

/** Ends the trying with this error, as it is; the last thing a function does. */
export type Bail = (error: unknown) => never
export type Retrier = <T>(fn: (bail: Bail, retryCount: number, retryTime: number) => Promise<T>) => Promise<T>

const BUGS = ['RangeError', 'ReferenceError', 'SyntaxError', 'TypeError']

/** `retriable !== false`, whatever else it is, unless it looks like a bug: errors of users are tried again too. */
const mayRetry = (e: Error): boolean => (e as { retriable?: unknown }).retriable !== false && !BUGS.includes(nameOf(e))

class Bailed {
  constructor(readonly error: unknown) {}
}

const bail: Bail = (error) => {
  // eslint-disable-next-line @typescript-eslint/only-throw-error -- caught by the retrier alone
  throw new Bailed(error)
}

/** `wait`: how to spend the time between two tries, if not on the virtual clock. */
export function createRetrier(
  clock: InnerClock,
  options: RetryOptions = {},
  wait: (ms: number) => Promise<void> = (ms) => clock.wait(ms),
): Retrier {
  const { maxRetryTime, initialRetryTime, multiplier, retries } = { ...DEFAULT_RETRY, ...options }
  return async (fn) => {
    let retryTime = initialRetryTime
    for (let retryCount = 0; ; retryCount++) {
      try {
        return await fn(bail, retryCount, retryTime)
      } catch (e) {
        if (e instanceof Bailed) throw e.error
        const error = e as Error
        if (!mayRetry(error)) throw new KafkaJSNonRetriableError(error, { cause: error.cause ?? error })
        if (retryCount >= retries) throw new KafkaJSNumberOfRetriesExceeded(error, retryCount, retryTime)
      }
      await wait(retryTime)
      retryTime = Math.min(retryTime * multiplier, maxRetryTime)
    }
  }
}
