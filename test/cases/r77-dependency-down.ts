/**
 * R77: a dependency down fills the dead letter topic.
 * Given a handler that needs a database and says so when it cannot be reached, and records that come without a pause.
 * When the database is away for 30 s.
 * Then the partitions hold, uncommitted; health says so and names it; no more than a few records are on the retry topic and
 * none on the dead letter topic; once it is back, all are handled without anybody doing anything.
 */
import { it } from 'vitest'
import { outage } from '../../src'
import type { Given } from '../contract/promises'
import { waitsForDatabase } from './held-by-outage'

export function r77(given: Given): void {
  it('R77: a dependency that is down is waited for, and nothing of it is a dead letter', () =>
    waitsForDatabase(given, () => outage('the database', { cause: new Error('connect ECONNREFUSED') })))
}
