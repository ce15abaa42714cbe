/**
 * The wire format of the envelope. Records with these headers wait on brokers, and other people's tools read them: a
 * change here breaks both. A wanted one is accepted with `npx vitest run test/golden -u`, and stands in the changelog.
 */
import { expect, it } from 'vitest'
import { FAILURE_REASONS, HEADER, LIMIT, OWN_HEADER_BUDGET, writeReplay } from '../../src/envelope'
import type { Header, Rec } from '../../src/record'
import { composeCopy, decideRoute, type Failure, type Handled, openMain, openRetry } from '../../src/route'
import { buildTopology } from '../../src/topology'

const AT = Date.UTC(2024, 4, 1, 12, 30, 15, 250)
const topology = buildTopology({ topics: ['orders'], groupId: 'billing', delays: [60_000] })
const failure: Failure = {
  error: { name: 'HttpError', message: 'HTTP 503: “busy”', stack: 'HttpError: HTTP 503\n    at pay (pay.js:1:1)' },
  because: 'the HTTP status asks for a retry [503]',
  at: AT,
  groupId: 'billing',
  release: '1.4.0',
}
const record: Rec = {
  topic: 'orders',
  partition: 2,
  offset: 9007199254740993n,
  timestamp: AT - 5000,
  key: Buffer.from('k'),
  value: Buffer.from('v'),
  headers: [
    ['traceparent', Buffer.from('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')],
    ['tag', Buffer.from('a')],
    ['tag', null],
    ['none', null],
  ],
}

function copy(rec: Rec, opened: Handled, more: Partial<Failure> = {}): readonly Header[] {
  const verdict = { kind: 'retry' } as const
  const told = { ...failure, ...more }
  const decision = decideRoute({ ...opened, verdict, topology, now: told.at, random: () => 0 })
  return composeCopy(rec, opened, decision, told, 3).headers
}

const readable = (headers: readonly Header[]) => headers.map(([name, value]) => [name, value?.toString() ?? null])

it('is what the golden file says', async () => {
  const onRetry = copy(record, openMain(record, topology) as Handled)
  const retried: Rec = { ...record, topic: 'orders.retry.1m', offset: 7n, timestamp: AT + 10, headers: onRetry }
  const lastAttempt = openRetry(retried, topology, AT + 60_000) as Handled
  const onDlq = copy(retried, lastAttempt, { at: AT + 60_020, latenessMs: 3 })
  const replayed = writeReplay(lastAttempt.headers, lastAttempt.original, { count: 1, forGroup: 'billing' })
  const golden = {
    headers: Object.fromEntries(Object.entries(HEADER).map(([field, name]) => [name, { maxBytes: LIMIT[field as never] }])),
    budget: OWN_HEADER_BUDGET,
    failureReasons: FAILURE_REASONS,
    retry: readable(onRetry),
    deadLetter: readable(onDlq),
    replay: readable(replayed),
  }
  await expect(`${JSON.stringify(golden, null, 2)}\n`).toMatchFileSnapshot('headers.json')
})
