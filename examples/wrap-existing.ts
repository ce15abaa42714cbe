// An eachMessage handler that was written for kafkajs runs as it is: what it throws is now retried.
import type { EachMessagePayload } from 'kafkajs'
import { createResilientConsumer } from '../src/index' // yours: 'retryline'
import { createFakeKafka } from '../src/testing' // yours: 'retryline/testing'

/** The bank of this example is away for a quarter of an hour. */
const bank = { back: false }

// Before: consumer.run({ eachMessage: charge })
async function charge({ topic, partition, message, heartbeat }: EachMessagePayload): Promise<void> {
  const id = `${topic}/${partition}@${message.offset}` // the same at every attempt: good for idempotency
  await heartbeat()
  if (!bank.back) throw Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:443'), { code: 'ECONNREFUSED' })
  console.log(`charged ${String(message.value)}, ${id}`)
}

const kafka = createFakeKafka({ topics: { orders: 1 } })
const consumer = createResilientConsumer({
  kafka,
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1m', '10m', '1h'],
  topicSetup: 'create',
  handler: charge,
})
await consumer.start()
for (const order of ['order-30', 'order-31', 'order-32']) kafka.produce('orders', { value: order })
await kafka.clock.advance('15m')
console.log('the bank is back')
bank.back = true
await kafka.clock.advance('2h')
await consumer.stop()
