import { describe, expect, it } from 'vitest'
import { createResilientConsumer, memoryHooks, RetryableError } from '../../src'
import { PartitionLog } from '../../src/testing/log'
import { createFakeKafka } from '../../src/testing'
import { numberPromises } from './p8-numbers'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P8 on the fake broker', fakeStage, numberPromises)

const nothing = (): void => undefined
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }
/** Where a number has long stopped to tell one offset from the next. */
const HIGH = 2n ** 53n + 1n
const HIGHEST = 2n ** 63n - 10n

describe('P8 exact numbers: offsets beyond 2^53', () => {
  it.each([HIGH, HIGHEST])('begins, commits, copies and tells of them exactly: from %s on', async (start) => {
    const kafka = createFakeKafka({ topics: { orders: 1, 'orders.retry.1m': 1, 'orders.dlq': 1 } })
    beginAt(kafka, 'orders', start - 1n)
    const seen: string[] = []
    const hooks = memoryHooks()
    const consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: ['1m'],
      logger,
      hooks,
      handler: ({ message }, ctx) => {
        seen.push(`${message.offset}#${ctx.attempt}`)
        if (String(message.value) === 'bad') throw new RetryableError('not now')
      },
    })
    await consumer.start()
    for (const value of ['a', 'bad', 'c']) kafka.produce('orders', { value })
    await kafka.clock.advance('2m')
    expect(seen).toEqual([`${start}#1`, `${start + 1n}#1`, `${start + 2n}#1`, `${start + 1n}#2`])
    expect(kafka.committed('billing', 'orders').get(0)?.offset).toBe(start + 3n)
    const [dead] = kafka.records('orders.dlq')
    const original = dead?.headers.find(([name]) => name === 'x-original-offset')?.[1]
    expect(String(original)).toBe(String(start + 1n))
    expect(hooks.events('retried')[0]?.offset).toBe(String(start + 1n))
    const lane = consumer.health().groups[0]?.partitions[0]
    expect(lane).toMatchObject({ position: String(start + 3n), committed: String(start + 3n) })
    await consumer.stop()
  })
})

/** The fake has no way to begin a log anywhere but at 0, so the log itself is caught, and told. */
function beginAt(kafka: ReturnType<typeof createFakeKafka>, topic: string, start: bigint): void {
  const { append } = PartitionLog.prototype
  PartitionLog.prototype.append = function (batch) {
    this.end = start
    return append.call(this, batch)
  }
  try {
    kafka.produce(topic, { value: 'finds the log' })
    kafka.deleteRecords(topic, 0, start + 1n)
  } finally {
    PartitionLog.prototype.append = append
  }
}
