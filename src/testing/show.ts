/** A value in the message of an error: short, on one line, whatever it is. */
const LONGEST = 60

export function show(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'object' || value === null) return String(value)
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`
  const kind = kindOf(value)
  if (kind !== 'Object') return `${/^[AEIOU]/.test(kind) ? 'an' : 'a'} ${kind}`
  const names = Object.keys(value)
  if (names.length === 0) return 'an empty object'
  return `an object with ${names.slice(0, 3).join(', ')}${names.length > 3 ? ', …' : ''}`
}

/** `Object`, `Map`, `Promise`, `Date` …: also of a value that another realm (a test runner's sandbox) has made. */
export const kindOf = (value: object): string => Object.prototype.toString.call(value).slice(8, -1)

export const quoted = (text: string): string => `'${text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text}'`

/** Bytes as a reader wants them: text where they are some, else how many there are. */
export function showBytes(bytes: Buffer | null): string {
  if (bytes === null) return 'null'
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? quoted(text) : `${bytes.length} bytes`
}
