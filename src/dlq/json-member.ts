/**
 * The text of one member of a JSON object, as it stands in the source: numbers keep their digits, objects their order and
 * their spaces, which parsing and writing again would not. The last member of that name counts, as with `JSON.parse`.
 *
 * `source` must be valid JSON whose outermost value is an object. Undefined where it has no such member.
 */
export function memberText(source: string, name: string): string | undefined {
  let found: string | undefined
  let at = source.indexOf('{') + 1
  for (;;) {
    at = skip(source, at, SPACE)
    if (source[at] !== '"') return found
    const keyEnd = endOfString(source, at)
    const isIt = JSON.parse(source.slice(at, keyEnd)) === name
    at = skip(source, source.indexOf(':', keyEnd) + 1, SPACE)
    const end = endOfValue(source, at)
    if (isIt) found = source.slice(at, end)
    at = skip(source, end, SPACE)
    if (source[at] === ',') at++
  }
}

const SPACE = ' \t\r\n'

function skip(source: string, from: number, what: string): number {
  let at = from
  while (at < source.length && what.includes(source[at]!)) at++
  return at
}

/** Behind the closing quote. */
function endOfString(source: string, opening: number): number {
  let at = opening + 1
  for (; at < source.length && source[at] !== '"'; at++) if (source[at] === '\\') at++
  return at + 1
}

function endOfValue(source: string, from: number): number {
  let depth = 0
  let at = from
  while (at < source.length) {
    const char = source[at]!
    if (char === '"') {
      at = endOfString(source, at)
      if (depth === 0) return at
      continue
    }
    if (char === '{' || char === '[') depth++
    else if (char === '}' || char === ']') {
      // The brace of the object around it ends a bare number or word.
      if (depth === 0) return at
      if (--depth === 0) return at + 1
    } else if (depth === 0 && (char === ',' || SPACE.includes(char))) return at
    at++
  }
  return at
}
