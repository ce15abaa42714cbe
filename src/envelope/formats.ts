/** The grammar of single values. Every reader takes the bytes and gives `undefined` for what is not exactly the format. */

import { isUtf8 } from 'node:buffer'

const WHOLE = /^(0|[1-9][0-9]*)$/
const SIGNED = /^(0|-?[1-9][0-9]*)$/
const ISO = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/
const LATEST = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
const MAX_PARTITION = 2 ** 31 - 1
const MAX_OFFSET = 2n ** 63n - 1n

/** A whole number from 0 to 999999999999999 (15 digits, which a number holds exactly); no sign, no leading zeros. */
export function readWhole(bytes: Buffer): number | undefined {
  const text = bytes.toString('latin1')
  return text.length <= 15 && WHOLE.test(text) ? Number(text) : undefined
}

export function readPartition(bytes: Buffer): number | undefined {
  const value = readWhole(bytes)
  return value !== undefined && value <= MAX_PARTITION ? value : undefined
}

/** As readWhole, up to the largest offset that Kafka can give. */
export function readOffset(bytes: Buffer): bigint | undefined {
  const text = bytes.toString('latin1')
  if (text.length > 19 || !WHOLE.test(text)) return undefined
  const value = BigInt(text)
  return value <= MAX_OFFSET ? value : undefined
}

/**
 * Any timestamp that Kafka can hold: producers that write micro- or nanoseconds exist, and -1 means that there is none.
 * Past 2^53 the last digits are lost.
 */
export function readTimestamp(bytes: Buffer): number | undefined {
  const text = bytes.toString('latin1')
  return text.length <= 20 && SIGNED.test(text) ? Number(text) : undefined
}

export function readTime(bytes: Buffer): number | undefined {
  return parseIsoTime(bytes.toString('latin1'))
}

export function parseIsoTime(text: string): number | undefined {
  if (text === parsedText) return parsedMs
  if (!ISO.test(text)) return undefined
  const ms = Date.parse(text)
  // Date.parse takes the 30th of February for a day in March.
  if (Number.isNaN(ms) || isoTime(ms) !== text) return undefined
  ;[parsedText, parsedMs] = [text, ms]
  return ms
}

// Failures come in storms, and each writes, and reads, the same time thrice: a Date's text is dear.
let lastMs = 0
let lastText = new Date(0).toISOString()
let parsedMs = 0
let parsedText = lastText

/** ISO 8601 in UTC with ms; a time outside the years 1970 to 9999 becomes the nearest that is inside. */
export function isoTime(ms: number): string {
  if (ms !== lastMs) {
    lastText = new Date(Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), LATEST)).toISOString()
    lastMs = ms
  }
  return lastText
}

/** A name: not empty, valid UTF-8. */
export function readName(bytes: Buffer): string | undefined {
  return bytes.length > 0 && isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

const TOPIC = /^[a-zA-Z0-9._-]+$/

/** A legal topic name. */
export function readTopic(bytes: Buffer): string | undefined {
  const text = bytes.toString('latin1')
  return TOPIC.test(text) && text !== '.' && text !== '..' ? text : undefined
}

/** Any text; bytes that are not UTF-8 show as U+FFFD. */
export function readText(bytes: Buffer): string {
  return bytes.toString('utf8')
}
