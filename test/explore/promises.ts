import { expect, it } from 'vitest'
import { explore } from '../../src/testing'
import { storm } from './storm'

/** Of both halves together; each has a file of its own, so that two processors are at work. */
const SEEDS = Number(process.env.EXPLORE_SEEDS ?? 2000)

export function describeStorm(half: 1 | 2): void {
  const seeds = Math.ceil(SEEDS / 2)
  const from = (half - 1) * seeds + 1
  const title = `P1, P2, P6 and P7 hold while members come, go, crash and die (seeds ${from} to ${from + seeds - 1})`
  it(title, { timeout: 900_000 }, async () => {
    const seen = await explore({ seeds, from, scenario: storm() })
    expect(seen.seeds).toBe(seeds)
    expect(seen.faults).toBeGreaterThan(seeds)
  })
}
