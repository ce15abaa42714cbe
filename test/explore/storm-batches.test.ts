import { expect, it } from 'vitest'
import { explore } from '../../src/testing'
import { storm } from './storm'

/** A hundredth of the others': behind the handler nothing knows of batches. */
const SEEDS = Math.ceil(Number(process.env.EXPLORE_SEEDS ?? 2000) / 100)

it(`P1, P2, P6 and P7 hold with batches as well (seeds 1 to ${SEEDS})`, { timeout: 300_000 }, async () => {
  const seen = await explore({ seeds: SEEDS, scenario: storm({ batches: true }) })
  expect(seen.seeds).toBe(SEEDS)
})
