/**
 * Handler places that several records share, since one call handles them all. The place is free when the last of them has
 * left it. Records that are not here have a place of their own.
 */
import type { Entry } from './lane'

export class SharedPlaces {
  readonly #places = new Map<Entry, { left: number }>()

  share(entries: readonly Entry[]): void {
    if (entries.length < 2) return
    const place = { left: entries.length }
    for (const entry of entries) this.#places.set(entry, place)
  }

  /** Whether others stay on the place that the record leaves. */
  leaves(entry: Entry): boolean {
    const place = this.#places.get(entry)
    if (place === undefined) return false
    this.#places.delete(entry)
    return --place.left > 0
  }
}
