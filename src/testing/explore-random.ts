/** Chance by seed: the same numbers for the same seed, on every machine. */
import type { Random } from '../ports'

/** Mixes numbers into one of 32 bits; near numbers give far ones. */
export function mix(...parts: readonly number[]): number {
  let hash = 0x9e3779b9
  for (const part of parts) {
    hash = Math.imul(hash ^ (part >>> 0), 0x85ebca6b)
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
    hash ^= hash >>> 16
  }
  return hash >>> 0
}

export const toUnit = (bits: number): number => bits / 2 ** 32

export function seededRandom(...seed: readonly number[]): Random {
  const start = mix(...seed)
  let drawn = 0
  return () => toUnit(mix(start, ++drawn))
}
