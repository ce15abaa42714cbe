import { createRequire } from 'node:module'
import { describe, expect, onTestFinished, test } from 'vitest'
import { withoutIdleTimer, type RequestQueueLike } from '../../../../src/adapters/kafkajs/request-queue'

/** kafkajs's own. */
interface RealQueue extends Required<RequestQueueLike> {
  throttleCheckTimeoutId: unknown
  readonly pending: unknown[]
  push(request: object): void
  fulfillRequest(answer: object): void
  maybeThrottle(ms: number): void
}
const RequestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as new (
  options: object,
) => RealQueue

const quiet = { debug() {}, info() {}, warn() {}, error() {} }

function setUp(options: { guarded: boolean; maxInFlightRequests?: number }): {
  queue: RealQueue
  ask(correlationId: number): void
  answer(correlationId: number): void
  sent: number[]
} {
  const queue = new RequestQueue({ requestTimeout: 60_000, enforceRequestTimeout: false, logger: quiet, ...options })
  if (options.guarded) withoutIdleTimer(queue)
  onTestFinished(() => queue.destroy())
  const sent: number[] = []
  return {
    queue,
    sent,
    ask(correlationId) {
      const entry = { correlationId, resolve() {}, reject() {} }
      queue.push({ entry, expectResponse: true, sendRequest: () => sent.push(correlationId) })
    },
    answer: (correlationId) => queue.fulfillRequest({ correlationId, payload: Buffer.alloc(0), size: 0 }),
  }
}

describe('a connection that has had its answer', () => {
  test('has kafkajs woken again and again for nothing', async () => {
    const { queue, ask, answer } = setUp({ guarded: false })
    ask(1)
    answer(1)
    await expect.poll(() => queue.throttleCheckTimeoutId).not.toBeNull()
  })

  test('is left alone here', () => {
    const { queue, ask, answer, sent } = setUp({ guarded: true })
    ask(1)
    answer(1)
    ask(2)
    expect(sent).toEqual([1, 2])
    expect(queue.throttleCheckTimeoutId).toBeNull()
  })
})

describe('a request that may not be sent yet', () => {
  test('goes out when the broker throttles no more', async () => {
    const { queue, ask, answer, sent } = setUp({ guarded: true })
    ask(1)
    // As kafkajs does it: before the answer is told.
    queue.maybeThrottle(30)
    answer(1)
    ask(2)
    expect(sent).toEqual([1])
    expect(queue.pending).toHaveLength(1)
    await expect.poll(() => sent).toEqual([1, 2])
    expect(queue.throttleCheckTimeoutId).toBeNull()
  })

  test('goes out when an answer has made room', async () => {
    const { queue, ask, answer, sent } = setUp({ guarded: true, maxInFlightRequests: 1 })
    ask(1)
    ask(2)
    expect(sent).toEqual([1])
    answer(1)
    expect(sent).toEqual([1, 2])
    answer(2)
    // It was woken once, for the one that waited.
    await expect.poll(() => queue.throttleCheckTimeoutId).toBeNull()
  })
})

test('a queue of another shape is left as it is', () => {
  const schedule = (): void => undefined
  const strange: RequestQueueLike = { scheduleCheckPendingRequests: schedule }
  withoutIdleTimer(strange)
  expect(strange.scheduleCheckPendingRequests).toBe(schedule)
  expect(() => withoutIdleTimer(undefined)).not.toThrow()
  expect(() => withoutIdleTimer({})).not.toThrow()
})
