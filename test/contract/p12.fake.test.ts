import { describe, expect, it } from 'vitest'
import { createResilientConsumer, memoryHooks, NonRetryableError } from '../../src'
import { createFakeKafka } from '../../src/testing'
import { silentPromises } from './p12-silent'
import { unreadablePromises } from './p12-unreadable'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P12 on the fake broker', fakeStage, silentPromises)
describeOn('P12 on the fake broker', fakeStage, unreadablePromises)

const nothing = (): void => undefined
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

describe('P12 no silent failure: a dead letter topic that may not be looked at', () => {
  it('blocks its partition, says so, and lets it go once it may be', async () => {
    const kafka = createFakeKafka({ topics: { orders: 1, 'orders.dlq': 1 } })
    const hidden = kafka.broker.every('metadata', { topic: 'orders.dlq' }).fail('TOPIC_AUTHORIZATION_FAILED')
    const hooks = memoryHooks()
    const consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: [],
      topicSetup: 'warn',
      logger,
      hooks,
      handler: () => {
        throw new NonRetryableError('a bad order')
      },
    })
    const starting = consumer.start()
    await kafka.clock.advance('1m')
    await starting
    kafka.produce('orders', { value: 'a' })
    await kafka.clock.advance('1m')
    expect(consumer.health()).toMatchObject({ status: 'degraded', groups: [{ partitions: [{ state: 'blocked' }] }] })
    expect(hooks.events('problem').map(({ where }) => where)).toContain(
      "looking up 'orders.dlq' for a copy; orders/0 waits",
    )
    expect(kafka.committed('billing', 'orders').get(0)?.offset ?? 0n).toBe(0n)
    hidden.stop()
    await kafka.clock.advance('1m')
    expect(kafka.records('orders.dlq')).toHaveLength(1)
    expect(kafka.committed('billing', 'orders').get(0)?.offset).toBe(1n)
    expect(consumer.health().status).toBe('ok')
    await consumer.stop()
  })
})
