/** What the cluster does not allow, on the fake; test/broker/secured tells the same of a real one that has an authorizer. */
import { afterEach, describe, expect, it } from 'vitest'
import {
  createResilientConsumer,
  isRetrylineError,
  memoryHooks,
  RetryableError,
  type ResilientConsumer,
} from '../../src'
import { createFakeKafka } from '../../src/testing'

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

describe('P12, P13: what the cluster does not allow', () => {
  let consumer: ResilientConsumer
  let kafka: ReturnType<typeof createFakeKafka>
  let hooks: ReturnType<typeof memoryHooks>
  afterEach(() => consumer.stop())

  function given(): void {
    hooks = memoryHooks()
    kafka = createFakeKafka({ topics: { orders: 1, 'orders.retry.1m': 1, 'orders.dlq': 1 } })
    consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: ['1m'],
      logger: SILENT,
      hooks,
      handler: () => {
        throw new RetryableError('a bad order')
      },
    })
  }

  async function started(): Promise<unknown> {
    const starting = consumer.start().catch((error: unknown) => error)
    await kafka.clock.advance('1m')
    return starting
  }

  it('a group: the start is refused, and says which and what allows it', async () => {
    given()
    kafka.broker.deny({ group: 'billing.retry.1m' })
    const error = await started()
    expect(isRetrylineError(error, 'RETRYLINE_FORBIDDEN')).toBe(true)
    expect(error).toMatchObject({ operation: 'Read', resourceType: 'group', resources: ['billing.retry.1m'] })
    expect((error as Error).message).toBe(
      "the client's principal may not Read group 'billing.retry.1m'; allow it: kafka-acls.sh --bootstrap-server " +
        '"$KAFKA_BROKERS" --add --allow-principal "$PRINCIPAL" --operation Read --group billing.retry.1m',
    )
    expect(consumer.health().status).toBe('stopped')
  })

  it('a topic that may not be looked at: the start is refused, with all that is needed of it', async () => {
    given()
    kafka.broker.deny({ topic: 'orders.retry.1m' })
    const error = await started()
    expect(isRetrylineError(error, 'RETRYLINE_TOPICS') && error.problems).toEqual([
      "orders.retry.1m (retry topic 1m of 'orders'): the client's principal may not Describe it; allow what this consumer " +
        'needs of it: kafka-acls.sh --bootstrap-server "$KAFKA_BROKERS" --add --allow-principal "$PRINCIPAL" ' +
        '--operation Read --operation Write --operation DescribeConfigs --topic orders.retry.1m',
    ])
  })

  it('a topic that may not be written to: the copy waits, health names it, and it goes on when it may', async () => {
    given()
    expect(await started()).toBeUndefined()
    const denied = kafka.broker.deny({ topic: 'orders.retry.1m', to: 'write' })
    kafka.produce('orders', { value: 'a' })
    await kafka.clock.advance('30s')
    const said = /ForbiddenError: the client's principal may not Write topic 'orders\.retry\.1m'; allow it: kafka-acls/
    expect(hooks.events('publishFailed')[0]?.error).toMatch(said)
    expect(consumer.health()).toMatchObject({
      status: 'degraded',
      groups: [{ partitions: [{ state: 'blocked' }] }, {}],
    })
    expect(consumer.health().problems.join('\n')).toMatch(said)
    denied.stop()
    await kafka.clock.advance('5m')
    expect(kafka.records('orders.dlq')).toHaveLength(1)
    expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })
  })

  it('a topic that may not be read any more: it crashes and says so, and goes on when it may', async () => {
    given()
    expect(await started()).toBeUndefined()
    const denied = kafka.broker.deny({ topic: 'orders', to: 'read' })
    await kafka.clock.advance('10s')
    const said = /ForbiddenError: the client's principal may not Read topic 'orders'; allow it: kafka-acls/
    expect(hooks.events('crashed')[0]).toMatchObject({ tier: 'main', error: expect.stringMatching(said) as string })
    expect(consumer.health().problems.join('\n')).toMatch(said)
    denied.stop()
    kafka.produce('orders', { value: 'a' })
    await kafka.clock.advance('5m')
    expect(kafka.records('orders.dlq')).toHaveLength(1)
  })
})
