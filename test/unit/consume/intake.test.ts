import { expect, test } from 'vitest'
import { takeBatch, type Intake } from '../../../src/consume/intake'
import type { Entry } from '../../../src/consume/lane'
import { createEmitter } from '../../../src/observe'
import { silentLogger, systemClock } from '../../../src/ports'
import type { Message } from '../../../src/record'
import { buildTopology } from '../../../src/topology'
import { lane, message } from './given'

const NOW = 1_700_000_000_000
const ROOM = { records: 100, bytes: 1_000_000, of: 1_000_000 }
const intake: Intake = {
  ordering: 'unordered',
  gated: true,
  topology: buildTopology({ topics: ['orders'], groupId: 'billing', delays: [60_000] }),
  emitter: createEmitter({ groupId: 'billing', logger: silentLogger }),
  clock: { ...systemClock, now: () => NOW },
  settled: () => undefined,
}

/** Cut out of a response, as kafkajs does it; with more around them than is theirs. */
function taken(dueAt: (string | null)[], around = 0): { queued: Message[]; response: ArrayBufferLike } {
  const response = Buffer.alloc(64 * dueAt.length + around)
  const one = lane(0, { topic: 'orders.retry.1m', gated: true })
  const messages = dueAt.map((due, i) => {
    const value = response.subarray(64 * i, 64 * (i + 1))
    return message(i, { value, headers: { 'x-due-at': due === null ? null : Buffer.from(due) } })
  })
  const queued: Message[] = []
  Object.assign(one.queue, { push: (entry: Entry) => void queued.push(entry.message) })
  takeBatch(intake, one, { messages, lastOffset: BigInt(dueAt.length - 1) }, ROOM)
  return { queued, response: response.buffer }
}

test.each<[string, (string | null)[]]>([
  ['that waits', [`${NOW + 30_000}`]],
  ['of which the last waits', [`${NOW - 1}`, `${NOW + 30_000}`]],
  ['that does not say when it is due', [null]],
  ['that says it in words', ['soon']],
])('a retry %s lets go of the response that it came in', (_, dueAt) => {
  const { queued, response } = taken(dueAt)
  expect(queued).toHaveLength(dueAt.length)
  for (const { value } of queued) expect(value!.buffer).not.toBe(response)
})

test('retries that are due are not copied for it', () => {
  const { queued, response } = taken([`${NOW - 5}`, `${NOW}`])
  for (const { value } of queued) expect(value!.buffer).toBe(response)
})

test('but where they would keep more of it than there is room for', () => {
  const { queued, response } = taken([`${NOW - 5}`], 2 * ROOM.of)
  expect(queued).toHaveLength(1)
  expect(queued[0]!.value!.buffer).not.toBe(response)
})
