import { expect, it } from 'vitest'
import { explore, type ExploreError } from '../../src/testing'
import { backwards, commitsAgain, neverWaits, settledTooSoon, takesAnything } from './plants'
import { storm, type Plant } from './storm'

/** Seeds within which each must be found. */
const WITHIN = 500

it.each<[string, Plant, string]>([
  ['a commit before the publish is acknowledged', settledTooSoon, 'P1'],
  ['a due gate that is open', neverWaits, 'P2'],
  ['a commit that is tried again in the next generation', commitsAgain, 'P7'],
  ['a batch of the generation before, taken', takesAnything, 'P1|P6|P7'],
  ['a batch handed over backwards', backwards, 'P1|P6'],
])('finds %s', { timeout: 120_000 }, async (name, plant, promise) => {
  const told: string[] = []
  const print = (text: string): void => void told.push(text)
  const error = await explore({ seeds: WITHIN, scenario: storm({ plant }), print, shrink: false }).catch(
    (e: ExploreError) => e,
  )
  expect(error).toMatchObject({ name: 'ExploreError', code: 'RETRYLINE_TESTING' })
  const { seed, promise: broken, message } = error as ExploreError
  expect(broken).toMatch(new RegExp(`^(${promise})$`))
  expect(told).toEqual([message])
  process.stdout.write(`${JSON.stringify({ planted: name, seeds: seed, broken })}\n`)
  // It is the seed that breaks it: without the plant, the same one holds.
  await explore({ seed, scenario: storm() })
})
