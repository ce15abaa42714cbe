// A handler that fails twice. The record waits on a retry topic, and nothing behind it waits for it.
import { createResilientConsumer, RetryableError } from '../src/index' // yours: 'retryline'
import { createFakeKafka } from '../src/testing' // yours: 'retryline/testing'

const kafka = createFakeKafka({ topics: { orders: 3 } }) // in production: new Kafka({ brokers })
const consumer = createResilientConsumer({
  kafka,
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1m', '10m', '1h'],
  topicSetup: 'create', // makes orders.retry.1m, .10m, .1h and orders.dlq
  handler: async ({ message }, ctx) => {
    if (ctx.attempt < 3) throw new RetryableError('the bank does not answer')
    console.log(`${String(message.key)} was paid at attempt ${ctx.attempt} of ${ctx.maxAttempts}`)
  },
})
await consumer.start()
kafka.produce('orders', { key: 'order-17', value: '{"total":4200}' })
await kafka.clock.advance('11m') // virtual time: it takes no longer than the work
await consumer.stop()
