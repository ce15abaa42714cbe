// What a consumer tells: hooks for metrics, and events for anything else.
import { consoleHooks, createResilientConsumer, memoryHooks, RetryableError } from '../src/index' // yours: 'retryline'
import { createFakeKafka } from '../src/testing' // yours: 'retryline/testing'

const kafka = createFakeKafka({ topics: { orders: 3 } })
const memory = memoryHooks()
const consumer = createResilientConsumer({
  kafka,
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1m', '10m'],
  topicSetup: 'create',
  hooks: [consoleHooks({ every: '1m', clock: kafka.clock }), memory],
  handler: async ({ message }, { attempt }) => {
    const failures = Number(message.value)
    if (attempt <= failures) throw new RetryableError('not yet')
  },
})
const stopListening = consumer.on('deadLettered', ({ topic, offset, to, reason, because }) => {
  console.log(`page somebody: ${topic}@${offset} is on ${to} (${reason}: ${because})`)
})
await consumer.start()
for (const failures of [0, 0, 0, 1, 2, 3]) kafka.produce('orders', { value: String(failures) })
await kafka.clock.advance('15m')
console.log(`health: ${consumer.health().status}`)
stopListening()
await consumer.stop()

const { attempt, retried, deadLettered } = memory.counts
console.log(`${attempt} attempts, ${retried} retries, ${deadLettered} dead letters`)
