/**
 * Which dead letters died of the same thing: those with the same class of error, the same message but for what changes from
 * record to record, thrown at the same place of the user's own code, in the same group.
 */
import { createHash } from 'node:crypto'
import type { Death } from './original'

export interface Fingerprint {
  /** 12 hexadecimal digits, the same for the same failure in every process and release. */
  readonly id: string
  readonly errorClass: string | undefined
  /** The message, numbers and ids in it replaced. */
  readonly message: string | undefined
  /** The topmost stack frame that is no library's, without line numbers, which change with each release. */
  readonly frame: string | undefined
  readonly group: string | undefined
}

export function fingerprintOf({ errorClass, error, stack, group }: Death): Fingerprint {
  const message = error === undefined ? undefined : normalise(error)
  const frame = stack === undefined ? undefined : ownFrame(stack)
  // JSON keeps apart what stands next to each other.
  const parts = JSON.stringify([errorClass ?? null, message ?? null, frame ?? null, group ?? null])
  const id = createHash('sha256').update(parts).digest('hex').slice(0, 12)
  return { id, errorClass, message, frame, group }
}

/** Texts longer than this differ in their end by chance. */
const LONGEST = 300

/** In this order: what is quoted may hold an address, an address an id, an id digits. */
const VARIABLE: readonly (readonly [RegExp, string])[] = [
  [/"[^"]*"|'[^']*'|`[^`]*`/g, '<text>'],
  [/\b[a-z][a-z\d+.-]*:\/\/\S+/gi, '<url>'],
  [/[^\s<>@]+@[^\s<>@]+/g, '<address>'],
  [/\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/gi, '<id>'],
  [/\b(?=[\da-f]*\d)[\da-f]{8,}\b/gi, '<id>'],
  [/\d+/g, '<n>'],
  [/\s+/g, ' '],
]

/** The message without what changes from record to record. */
export function normalise(message: string): string {
  let text = message.slice(0, LONGEST * 4)
  for (const [what, by] of VARIABLE) text = text.replace(what, by)
  return text.trim().slice(0, LONGEST)
}

const LIBRARY =
  /node_modules|node:|\(internal\/|<anonymous>|\bat (java|javax|jdk|sun|kotlin|org\.springframework|org\.apache)\./

/** `at place (file:12:3)` of V8, `at some.Class.method(File.java:12)` of a JVM. */
function ownFrame(stack: string): string | undefined {
  for (const line of stack.split('\n')) {
    const frame = line.trim()
    if (!frame.startsWith('at ') || LIBRARY.test(frame)) continue
    return frame
      .slice(3)
      .replace(/^async /, '')
      .replace(/(:\d+)+(?=\)?$)/, '')
      .replace(/\?[^)]*/, '')
  }
  return undefined
}
