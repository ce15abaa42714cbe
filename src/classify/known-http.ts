import type { Look } from './look'
import { oneOf } from './known-network'
import type { Finding } from './known-network'

/** RFC 9110: request timeout; RFC 8470: too early; RFC 6585: too many requests. */
const RETRIED = new Set([408, 425, 429])

const worthRetrying = (status: number): boolean => status >= 500 || RETRIED.has(status)

export const httpTransient = ({ status }: Look): Finding => status !== undefined && worthRetrying(status) && `${status}`

export const httpRefused = ({ status }: Look): Finding =>
  status !== undefined && status >= 400 && !worthRetrying(status) && `${status}`

/** The AWS SDK's own list, in @smithy/core's `THROTTLING_ERROR_CODES`. Version 3 has them as name, version 2 as code. */
// prettier-ignore
const AWS_THROTTLING = new Set([
  'BandwidthLimitExceeded', 'EC2ThrottledException', 'LimitExceededException', 'PriorRequestNotComplete',
  'ProvisionedThroughputExceededException', 'RequestLimitExceeded', 'RequestThrottled', 'RequestThrottledException',
  'SlowDown', 'ThrottledException', 'Throttling', 'ThrottlingException', 'TooManyRequestsException',
  'TransactionInProgressException',
])

export function aws({ names, code, get }: Look): Finding {
  const retryable = get('$retryable')
  if (typeof retryable === 'object' && retryable !== null) return names[0] ?? true
  return names.find((name) => AWS_THROTTLING.has(name)) ?? oneOf(code, AWS_THROTTLING)
}

/** DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNAVAILABLE. */
const GRPC = new Map([
  [4, 'DEADLINE_EXCEEDED'],
  [8, 'RESOURCE_EXHAUSTED'],
  [14, 'UNAVAILABLE'],
])

/** Small numbers are everybody's codes (a DOMException's, a broker's): gRPC's come with `details` or `metadata`. */
export function grpc({ code, get }: Look): Finding {
  if (typeof code !== 'number') return false
  const metadata = get('metadata')
  const isGrpc = typeof get('details') === 'string' || (typeof metadata === 'object' && metadata !== null)
  return (isGrpc && GRPC.get(code)) || false
}
