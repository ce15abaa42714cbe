/**
 * R78: an open breaker dead-letters everything.
 * Given a circuit breaker of the user's in front of a database, and a classifier that knows its error.
 * When it is open for 30 s, with 1,000 records waiting.
 * Then none of them is a dead letter, and all are handled once it has closed.
 */
import { it } from 'vitest'
import { hold, type ClassifyOption } from '../../src'
import type { Given } from '../contract/promises'
import { waitsForDatabase } from './held-by-outage'

class OpenBreaker extends Error {}

const classify: ClassifyOption = (error) =>
  error instanceof OpenBreaker ? hold('the database', 'its breaker is open') : undefined

export function r78(given: Given): void {
  it('R78: 1,000 records before an open breaker: none is a dead letter', () =>
    waitsForDatabase(given, () => new OpenBreaker('open'), { classify }))
}
