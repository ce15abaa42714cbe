import { describe, expect, it } from 'vitest'
import { createResilientConsumer } from '../../src'
import { createFakeKafka } from '../../src/testing'
import { runtimePromises } from './p13-runtime'
import { describeOn } from './promises'
import { fakeStage } from './stage-fake'

describeOn('P13 on the fake broker', fakeStage, runtimePromises)

const nothing = (): void => undefined
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

describe('P13 bad input: what the broker refuses at the start', () => {
  const topics = { orders: 1, 'orders.retry.1m': 1, 'orders.dlq': 1 }

  it.each([
    ['the group may not be joined', 'join', 'GROUP_AUTHORIZATION_FAILED'],
    ['offsets may not be read', 'offsets', 'GROUP_AUTHORIZATION_FAILED'],
  ] as const)('%s: told, and not ended in silence', async (_, kind, error) => {
    const kafka = createFakeKafka({ topics })
    kafka.broker.every(kind, { group: 'billing' }).fail(error)
    const consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: ['1m'],
      logger,
      handler: nothing,
    })
    const problems: string[] = []
    consumer.on('problem', (event) => void problems.push(event.error))
    let failure: unknown
    const starting = consumer.start().catch((caught: unknown) => {
      failure = caught
    })
    kafka.produce('orders', { value: 'a' })
    await kafka.clock.advance('5m')
    const told = `${(failure as Error | undefined)?.message ?? ''} ${problems.join(' ')}`
    expect(told).toMatch(/may not (Read|Describe) group 'billing'/)
    expect(kafka.committed('billing', 'orders').get(0)?.offset ?? 0n).toBe(0n)
    const stopping = consumer.stop({ timeout: '1s' })
    await kafka.clock.advance('5m')
    await stopping
    await starting
    expect(kafka.clock.timers()).toBe(0)
  })
})
