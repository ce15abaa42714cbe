// The value, decoded and checked: the handler gets it with its type, and what does not fit never reaches the handler.
import { z } from 'zod' // or valibot, arktype: any Standard Schema
import { createResilientConsumer } from '../src/index' // yours: 'retryline'
import { createFakeKafka } from '../src/testing' // yours: 'retryline/testing'

const Order = z.object({ id: z.string(), total: z.number().positive() })

const kafka = createFakeKafka({ topics: { orders: 3 } })
const consumer = createResilientConsumer({
  kafka,
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1m', '10m', '1h'],
  topicSetup: 'create',
  schema: Order, // decodes JSON first; `decode` takes a function for anything else
  handler: async (_payload, { value }) => {
    console.log(`${value.id}: ${value.total.toFixed(2)} €`) // value is { id: string, total: number }
  },
})
await consumer.start()
kafka.produce('orders', { key: '19', value: '{"id":"order-19","total":42}' })
kafka.produce('orders', { key: '20', value: '{"id":"order-20","total":"a lot"}' })
kafka.produce('orders', { key: '21', value: '<order id="21"/>' })
await kafka.clock.settle()
await consumer.stop()

for (const { value, headers } of kafka.records('orders.dlq')) {
  const { 'x-failure-reason': reason, 'x-error': error } = Object.fromEntries(headers)
  console.log(`${String(reason)}: ${String(value)}\n  ${String(error)}`)
}
