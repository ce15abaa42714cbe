// A record's invoice, its retry and its offset stand or fall together: readers of committed records see each of them once.
import { createResilientConsumer, RetryableError } from '../src/index' // yours: 'retryline'
import { createFakeKafka } from '../src/testing' // yours: 'retryline/testing'

const kafka = createFakeKafka({ topics: { orders: 1, invoices: 1 } })
const consumer = createResilientConsumer({
  kafka,
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1s'],
  topicSetup: 'create',
  delivery: 'exactly-once',
  handler: async ({ message }, ctx) => {
    if (ctx.attempt === 1) throw new RetryableError('the tax service is busy')
    // Not sent yet: it goes into the transaction that says that the order is done.
    ctx.send({ topic: 'invoices', key: message.key, value: `invoice for ${String(message.value)}` })
  },
})
await consumer.start()

kafka.produce('orders', { key: 'order-18', value: 'a bicycle' })
// The broker commits, and its answer is lost: did it, or did it not? retryline asks it, and does nothing twice.
kafka.broker.next('endTransaction').drop()
await kafka.clock.advance('10s')
await consumer.stop()

for (const topic of ['orders.retry.1s', 'invoices']) {
  for (const { key, value } of kafka.records(topic)) console.log(`${topic}: ${String(key)} ${String(value)}`)
}
