// What retrying cannot help goes to the dead letter topic at once, with the story of its failure in headers.
import { createResilientConsumer, NonRetryableError } from '../src/index' // yours: 'retryline'
import { createFakeKafka } from '../src/testing' // yours: 'retryline/testing'

const kafka = createFakeKafka({ topics: { orders: 3 } })
const consumer = createResilientConsumer({
  kafka,
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1m', '10m', '1h'],
  topicSetup: 'create',
  release: '2.4.1',
  handler: async () => {
    throw new NonRetryableError('customer 99 does not exist')
  },
})
await consumer.start()
kafka.produce('orders', { key: 'order-18', value: '{"customer":99}', headers: { 'trace-id': 'a1b2c3' } })
await kafka.clock.settle() // until broker and handlers are quiet
await consumer.stop()

for (const { key, value, headers } of kafka.records('orders.dlq')) {
  console.log(`${String(key)} ${String(value)}`)
  for (const [name, bytes] of headers) if (name !== 'x-error-stack') console.log(`  ${name}: ${String(bytes)}`)
}
