/**
 * R70: the delay of the wrong tier.
 * Given the waits 1m, 10m and 1h (and others: not in order, equal ones, a single one, none).
 * When a record fails at every attempt.
 * Then each copy stands on the topic of the wait before its attempt, and is due that wait after the failure and not the
 * one before or behind; after the last it is on the dead letter topic, with no due time.
 */
import { describe, expect, it } from 'vitest'
import { createResilientConsumer, RetryableError } from '../../src'
import { silentLogger } from '../../src/ports'
import { createFakeKafka } from '../../src/testing'

const MINUTE = 60_000

const TABLE: readonly { schedule: readonly string[]; waits: readonly number[] }[] = [
  { schedule: ['1m', '10m', '1h'], waits: [MINUTE, 10 * MINUTE, 60 * MINUTE] },
  { schedule: ['1h', '1m', '10m'], waits: [60 * MINUTE, MINUTE, 10 * MINUTE] },
  { schedule: ['1m', '1m', '5m', '1m'], waits: [MINUTE, MINUTE, 5 * MINUTE, MINUTE] },
  { schedule: ['40d'], waits: [40 * 24 * 60 * MINUTE] },
  { schedule: [], waits: [] },
]

describe('the due time of each attempt', () => {
  it.each(TABLE)('R70 P2: $schedule', async ({ schedule, waits }) => {
    const kafka = createFakeKafka({ topics: { orders: 1 } })
    const failedAt: number[] = []
    const dueAt: (number | undefined)[] = []
    const from: string[] = []
    const consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: [...schedule],
      topicSetup: 'create',
      logger: silentLogger,
      handler: (_, ctx) => {
        failedAt.push(kafka.clock.now())
        dueAt.push(ctx.dueAt)
        from.push(ctx.source.topic)
        throw new RetryableError('not now')
      },
    })
    await consumer.start()
    kafka.produce('orders', { value: 'a' })
    await kafka.clock.advance(waits.reduce((sum, wait) => sum + wait, 0))
    await consumer.stop()
    expect(from).toEqual(['orders', ...schedule.map((delay) => `orders.retry.${delay}`)])
    expect(dueAt).toEqual([undefined, ...waits.map((wait, i) => failedAt[i]! + wait)])
    expect(failedAt.slice(1)).toEqual(dueAt.slice(1))
    const letters = kafka.records('orders.dlq').map(({ headers }) => new Map(headers))
    expect(letters).toHaveLength(1)
    expect(letters[0]!.get('x-due-at')).toBeUndefined()
    expect(String(letters[0]!.get('x-attempt'))).toBe(String(waits.length + 1))
  })
})
