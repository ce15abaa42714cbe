import { Bench } from 'tinybench'
import { createClassifier } from '../../src/classify'
import { CommitTracker } from '../../src/consume/commit-tracker'
import { LaneQueue } from '../../src/consume/lane-queue'
import { SerialQueue } from '../../src/consume/serial-queue'
import { readEnvelope, writeEnvelope } from '../../src/envelope'
import { RetryableError } from '../../src/errors'
import type { Header, Message, Rec } from '../../src/record'
import { composeCopy, decideRoute, openRetry, type Handled } from '../../src/route'
import { buildTopology } from '../../src/topology'
import type { Suite } from '../lib/suite'

const MINUTE = 60_000
const NOW = Date.UTC(2026, 0, 1)
/** Records that one call of a stage is given. */
const BATCH = 1000
const numbers = Array.from({ length: BATCH }, (_, at) => at)

const topology = buildTopology({ topics: ['orders'], groupId: 'billing', delays: [MINUTE, 10 * MINUTE] })
const text = (value: string): Buffer => Buffer.from(value)
const headers: Header[] = [
  ['trace', text('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01')],
  ['x-attempt', text('2')],
  ['x-due-at', text(String(NOW))],
  ['x-original-topic', text('orders')],
  ['x-original-partition', text('2')],
  ['x-original-offset', text('123456')],
  ['x-original-timestamp', text(String(NOW - MINUTE))],
  ['x-consumer-group', text('billing')],
  ['x-first-failed-at', text(new Date(NOW - MINUTE).toISOString())],
  ['x-last-failed-at', text(new Date(NOW - MINUTE).toISOString())],
  ['x-error-class', text('RetryableError')],
  ['x-error', text('again, later')],
]
const place = { topic: 'orders.retry.1m', partition: 2, offset: 40n, timestamp: NOW }
const rec: Rec = { ...place, key: text('key-1'), value: Buffer.alloc(200), headers }
const opened = openRetry(rec, topology, NOW) as Handled
const error = Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:443'), { code: 'ECONNREFUSED' })
const failure = { error, because: 'the network', at: NOW, groupId: 'billing' }
const classify = createClassifier({ unknownErrors: 'dead-letter', now: () => NOW })
const input = { main: 'orders', attempt: 2, firstFailedAt: NOW, topology, now: NOW, random: () => 0.5 }
const decision = decideRoute({ ...input, verdict: { kind: 'retry' } })
const fields = {
  attempt: 2,
  dueAt: NOW,
  original: opened.original,
  group: 'billing',
  firstFailedAt: NOW,
  lastFailedAt: NOW,
  errorClass: 'Error',
  error: error.message,
  history: [],
}
const where = { topic: 'orders', partition: 2, attempt: 2, maxAttempts: 3 }
const messages: Message[] = numbers.map((at) => ({
  key: null,
  value: null,
  timestamp: String(NOW),
  offset: String(at),
  attributes: 0,
}))

interface Item {
  settled: boolean
  readonly offset: string
  tail: bigint | undefined
  readonly seq: number
  readonly dueAt: number
  readonly orderKey: string | undefined
}

const itemOf = (at: number, orderKey?: string, dueAt = 0): Item => ({
  settled: false,
  offset: messages[at]?.offset ?? '',
  tail: undefined,
  seq: at,
  dueAt,
  orderKey,
})

function track(order: readonly number[]): bigint {
  const tracker = new CommitTracker<Item>(0n)
  const items = numbers.map((at) => itemOf(at))
  for (const item of items) tracker.add(item)
  for (const at of order) tracker.settle(items[at]!)
  return tracker.frontier
}

function through(queue: LaneQueue<Item>, make: (at: number) => Item): number {
  let taken = 0
  for (const at of numbers) queue.push(make(at))
  for (let item = queue.take(NOW); item; item = queue.take(NOW)) {
    taken++
    queue.release(item)
  }
  return taken
}

function serially(): number {
  let made = 0
  const queue = new SerialQueue<Item>(() => itemOf(made++))
  queue.push({ messages, tail: BigInt(BATCH), bytesEach: 100, replayed: false })
  while (queue.take()) queue.release()
  return made
}

const each = (work: () => unknown) => (): unknown => {
  let last: unknown
  for (let at = 0; at < BATCH; at++) last = work()
  return last
}
const evens = numbers.filter((at) => at % 2 === 0)
const odds = numbers.filter((at) => at % 2 === 1)

/** Each handles as many records as a batch has, in one call. What it returns keeps it from being optimised away. */
const stages: Record<string, () => unknown> = {
  'envelope-read': each(() => readEnvelope(headers)),
  'envelope-write': each(() => writeEnvelope(headers, fields)),
  'classify-spoken': each(() => classify(new RetryableError('again'), { ...where, key: null, headers: {} } as never)),
  'classify-known': each(() => classify(error, { ...where, key: null, headers: {} } as never)),
  'route-open': each(() => openRetry(rec, topology, NOW)),
  'route-decide': each(() => decideRoute({ ...input, verdict: { kind: 'retry' } })),
  'route-compose': each(() => composeCopy(rec, opened, decision, failure, 6)),
  'tracker-in-order': () => track(numbers),
  'tracker-out-of-order': () => track([...odds, ...evens]),
  'lane-partition': serially,
  'lane-key': () => through(new LaneQueue<Item>(false), (at) => itemOf(at, `key-${at % 100}`)),
  'lane-due': () => through(new LaneQueue<Item>(true), (at) => itemOf(at, undefined, NOW - ((at * 7) % BATCH))),
}

/** A young generation so large that nothing is collected while allocations are counted. */
const flags = ['--expose-gc', '--min-semi-space-size=128', '--max-semi-space-size=128']

function bytesOf(stage: () => unknown): number {
  const calls = 20
  globalThis.gc?.()
  const before = process.memoryUsage()
  for (let call = 0; call < calls; call++) stage()
  const after = process.memoryUsage()
  const grown = after.heapUsed - before.heapUsed + after.arrayBuffers - before.arrayBuffers
  return Math.max(0, grown) / calls / BATCH
}

export const suite: Suite = {
  name: 'micro',
  unit: 'records/s',
  better: 'higher',
  method:
    'The pure stages, each alone in its process, by tinybench, in calls of 1,000 records; `bytes/record` is what a record ' +
    'allocates (heap and buffers, with no collection meanwhile). A record that succeeds at once passes a lane and the ' +
    'tracker only; `lane-key` and `lane-due` make their entries too. No peers.',
  systems: Object.keys(stages).map((name) => `retryline:${name}`) as [string, ...string[]],
  flags,

  async run(name, { small }) {
    const stage = stages[name.replace('retryline:', '')]
    if (!stage) throw new Error(`there is no stage ${name}`)
    const bench = new Bench({ time: small ? 20 : 500, warmupTime: small ? 10 : 200 })
    bench.add(name, stage)
    const [task] = await bench.run()
    const result = task?.result
    if (result?.state !== 'completed') throw new Error(`${name} did not complete: ${JSON.stringify(result)}`)
    const value = result.throughput.mean * BATCH
    const counts = { expected: 0, lost: 0, duplicated: 0, early: 0, problems: [] }
    return { value, figures: { 'bytes/record': bytesOf(stage) }, counts }
  },
}
