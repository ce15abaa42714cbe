const LONGEST = 80

/** A value as a problem shows it: short, on one line, whatever it is; never runs the value's own code for long, never throws. */
export function show(value: unknown): string {
  try {
    return shorten(describe(value))
  } catch {
    return 'a value that cannot be read'
  }
}

function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > LONGEST ? value.slice(0, LONGEST + 1) : value)
    case 'bigint':
      return value.toString().length > LONGEST ? 'a very large bigint' : `${value}n`
    case 'function':
      return value.name ? `function ${value.name}` : 'a function'
    case 'object':
      return value === null ? 'null' : describeObject(value)
    default:
      return String(value)
  }
}

/** Only the outline: what an object holds may be secret (a client's password), long or cyclic. */
function describeObject(value: object): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length}`
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : value.toISOString()
  const keys = Object.keys(value)
  return keys.length === 0
    ? 'an empty object'
    : `an object with ${keys.slice(0, 3).join(', ')}${keys.length > 3 ? ', …' : ''}`
}

function shorten(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}
