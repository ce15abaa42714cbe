/**
 * Kafka knows null header values; kafkajs reads them and throws when it should write one. So a null travels as an empty
 * value, and `x-null-headers` says which values those are: compact JSON, an array with one entry for each name, in
 * order of first appearance. A name alone says that all values of this name were null; `["a",0,2]` says that the first
 * and the third value of `a` were.
 *
 * The text has at most 16 KB. Names that do not fit are left out, and their values arrive as empty.
 */
import { type Header, lastHeader } from '../record'
import { HEADER, LIMIT } from './names'
import { parseArray } from './history'

/** By name: which of its values (counted from 0) are null; `true` if all are. */
type NullHeaders = ReadonlyMap<string, true | ReadonlySet<number>>

/** The text of `x-null-headers` for these headers; `undefined` if none is null. */
export function nameNullHeaders(headers: readonly Header[]): string | undefined {
  if (!headers.some(([, value]) => value === null)) return undefined
  const counts = new Map<string, { values: number; nulls: number[] }>()
  for (const [name, value] of headers) {
    let count = counts.get(name)
    if (count === undefined) counts.set(name, (count = { values: 0, nulls: [] }))
    if (value === null) count.nulls.push(count.values)
    count.values++
  }
  const entries: string[] = []
  let bytes = 2
  for (const [name, { values, nulls }] of counts) {
    if (nulls.length === 0) continue
    const entry = JSON.stringify(nulls.length === values ? name : [name, ...nulls])
    const more = Buffer.byteLength(entry) + 1
    if (bytes + more > LIMIT.nullHeaders) continue
    bytes += more
    entries.push(entry)
  }
  return entries.length === 0 ? undefined : `[${entries.join(',')}]`
}

/** `undefined` if the text is not in the format. */
export function readNullHeaders(text: string): NullHeaders | undefined {
  const list = parseArray(text)
  if (list === undefined) return undefined
  const names = new Map<string, true | ReadonlySet<number>>()
  for (const entry of list) {
    const [name, ...places] = (Array.isArray(entry) ? entry : [entry]) as unknown[]
    if (typeof name !== 'string' || !places.every((place) => Number.isSafeInteger(place))) return undefined
    names.set(name, places.length === 0 ? true : new Set(places as number[]))
  }
  return names
}

/**
 * Gives null back to the headers that `x-null-headers` names, where their values are empty. Call it for records that
 * we wrote (retry topic, dead letter topic, replay), never for others. Headers without nulls come back as they are; an
 * unreadable list changes nothing. Never throws.
 */
export function restoreNullHeaders(headers: readonly Header[]): readonly Header[] {
  const text = lastHeader(headers, HEADER.nullHeaders)
  if (text === undefined || text === null || text.length > LIMIT.nullHeaders) return headers
  const names = readNullHeaders(text.toString('utf8'))
  if (names === undefined) return headers
  const seen = new Map<string, number>()
  return headers.map((header) => {
    const [name, value] = header
    const places = names.get(name)
    if (places === undefined) return header
    const place = seen.get(name) ?? 0
    seen.set(name, place + 1)
    return value?.length === 0 && (places === true || places.has(place)) ? [name, null] : header
  })
}
