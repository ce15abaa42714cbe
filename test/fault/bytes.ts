/** Whether what was copied is what was there: key, value and the headers that are not ours. */
import { isOwnHeader } from '../../src/envelope'
import { fromKafkaHeaders } from '../../src/record'
import type { Place } from './ledger'
import { hopOf, type Standing } from './reader'

/** A line for each copy whose bytes differ from the record of the main topic that it says it is of. */
export function changedBytes(main: readonly Standing[], copies: readonly Standing[]): string[] {
  const originals = new Map<Place, Standing>(main.map((one) => [one.at, one]))
  return copies.flatMap((copy) => {
    const { place } = hopOf(copy)
    const original = originals.get(place)
    if (original === undefined || content(original) === content(copy)) return []
    return [`other bytes: ${copy.at} is not what ${place} was`]
  })
}

/** Null headers are written as empty ones; between different names no order is kept. */
function content({ key, value, headers }: Standing): string {
  const foreign = fromKafkaHeaders(headers)
    .filter(([name]) => !isOwnHeader(name))
    .map(([name, one], i) => ({ name, i, hex: one?.toString('hex') ?? '' }))
    .sort((a, b) => (a.name === b.name ? a.i - b.i : a.name < b.name ? -1 : 1))
  return JSON.stringify([key?.toString('hex'), value?.toString('hex'), foreign.map(({ name, hex }) => [name, hex])])
}
