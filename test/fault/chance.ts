/** Chance that a seed replays: mulberry32. */
export interface Chance {
  /** From 0 up to, and without, 1. */
  next(): number
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number
  pick<T>(items: readonly T[]): T
  shuffle<T>(items: readonly T[]): T[]
  /** A stream of its own: what one user draws from it does not move what another draws. */
  fork(): Chance
}

export function chanceOf(seed: number): Chance {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1))
  return {
    next,
    between,
    pick(items) {
      if (items.length === 0) throw new Error('there is nothing to pick from')
      return items[between(0, items.length - 1)]!
    },
    shuffle(items) {
      const left = [...items]
      return items.map(() => left.splice(between(0, left.length - 1), 1)[0]!)
    },
    fork: () => chanceOf(Math.floor(next() * 2 ** 32)),
  }
}
