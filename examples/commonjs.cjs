// The worker in CommonJS: `require` gives the same names, and there is no top-level await.
const { Kafka } = require('kafkajs')
const { createResilientConsumer } = require('retryline')

const { KAFKA_BROKERS = 'localhost:9092', BANK_URL = 'http://localhost:8080', NODE_ENV } = process.env

const consumer = createResilientConsumer({
  kafka: new Kafka({ clientId: 'billing', brokers: KAFKA_BROKERS.split(',') }),
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1s', '1m', '10m'],
  topicSetup: NODE_ENV === 'production' ? 'verify' : 'create',
  handler: async ({ message }, { signal }) => {
    const answer = await fetch(`${BANK_URL}/charges`, { method: 'POST', body: String(message.value), signal })
    if (!answer.ok) throw Object.assign(new Error(`the bank says ${answer.status}`), { status: answer.status })
  },
})
process.once('SIGTERM', () => consumer.stop())
process.once('SIGINT', () => consumer.stop())
consumer.start().catch((error) => {
  console.error(error.message)
  process.exitCode = 1
})
