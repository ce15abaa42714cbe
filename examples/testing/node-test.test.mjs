// node --test
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { RetryableError, createResilientConsumer, silentLogger } from 'retryline'
import { attempt, createFakeKafka, expectDeadLettered, expectRetried, record, runToEnd } from 'retryline/testing'

/** The handler under test: it charges an order, and gets what it needs handed in. */
const charge =
  (bank) =>
  async ({ message }, ctx) => {
    await bank.charge(ctx.value.total)
    ctx.send({ topic: 'receipts', key: message.key, value: 'paid' })
  }

const options = { groupId: 'billing', topic: 'orders', schedule: ['1m', '10m', '1h'], decode: 'json' }
const order = record({ key: 'order-17', value: { total: 42 } })

test('charges, and sends a receipt', async () => {
  const bank = { charge: mock.fn() }
  const { outcome, sent } = await attempt(charge(bank), order, options)
  assert.equal(outcome, 'succeeded')
  assert.deepEqual(bank.charge.mock.calls[0].arguments, [42])
  assert.deepEqual(
    sent.map(({ topic, key, value }) => [topic, key, value]),
    [['receipts', 'order-17', 'paid']],
  )
})

test('is retried after an hour when the bank is still down at the third attempt', async () => {
  const bank = { charge: () => Promise.reject(new RetryableError('the bank is down')) }
  const { outcome, tier, sent } = await attempt(charge(bank), order, { ...options, attempt: 3 })
  assert.deepEqual({ outcome, tier, sent }, { outcome: 'retry', tier: '1h', sent: [] })
})

test('ends on the dead letter topic when the bank stays down', async () => {
  const kafka = createFakeKafka({ topics: { orders: 3, receipts: 1 } })
  const handler = charge({ charge: () => Promise.reject(new RetryableError('the bank is down')) })
  const consumer = createResilientConsumer({ kafka, ...options, handler, topicSetup: 'create', logger: silentLogger })
  await consumer.start()
  kafka.produce('orders', order)
  await runToEnd(kafka) // 71 minutes pass, in milliseconds
  expectRetried(kafka, { key: 'order-17', times: 3 })
  expectDeadLettered(kafka, { topic: 'orders', key: 'order-17', reason: 'exhausted', attempts: 4 })
  assert.deepEqual(kafka.records('receipts'), [])
  await consumer.stop()
})
