import { describeError } from '../classify'
import { isRetrylineError } from '../errors'

/** A refusal ends with the command that mends it, of which half is no use. Bytes. */
const FORBIDDEN_BYTES = 2_000

/** Class and message of anything that was thrown, on one short line: what events and log lines tell of an error. */
export function errorText(error: unknown): string {
  const messageBytes = isRetrylineError(error, 'RETRYLINE_FORBIDDEN') ? FORBIDDEN_BYTES : 300
  const { name, message } = describeError(error, { messageBytes, stackBytes: 0 })
  const line = message.replaceAll(/\s+/g, ' ').trim()
  return line === '' ? name : `${name}: ${line}`
}
