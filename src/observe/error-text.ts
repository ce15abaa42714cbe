import { describeError } from '../classify'

/** Class and message of anything that was thrown, on one short line: what events and log lines tell of an error. */
export function errorText(error: unknown): string {
  const { name, message } = describeError(error, { messageBytes: 300, stackBytes: 0 })
  const line = message.replaceAll(/\s+/g, ' ').trim()
  return line === '' ? name : `${name}: ${line}`
}
