import { expect, it } from 'vitest'
import { explore } from '../../src/testing'
import { storm } from './storm'

/** A twentieth of the others': what differs with nodes is the fake, and kafkajs's ways, more than the engine. */
const SEEDS = Math.ceil(Number(process.env.EXPLORE_SEEDS ?? 2000) / 20)

it(`P1, P2, P6 and P7 hold on three nodes as well (seeds 1 to ${SEEDS})`, { timeout: 300_000 }, async () => {
  const seen = await explore({ seeds: SEEDS, scenario: storm(), kafka: { brokers: 3 } })
  expect(seen.seeds).toBe(SEEDS)
})
