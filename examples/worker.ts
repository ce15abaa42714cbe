// A worker process: nothing but the consumer. On SIGTERM it finishes what it has begun, commits, leaves and exits with 0.
import { Kafka } from 'kafkajs'
import { createResilientConsumer } from '../src/index' // yours: 'retryline'

const { KAFKA_BROKERS = 'localhost:9092', BANK_URL = 'http://localhost:8080', NODE_ENV } = process.env

const consumer = createResilientConsumer({
  kafka: new Kafka({ clientId: 'billing', brokers: KAFKA_BROKERS.split(',') }),
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1s', '1m', '10m'],
  topicSetup: NODE_ENV === 'production' ? 'verify' : 'create',
  handler: async ({ message }, { signal }) => {
    const answer = await fetch(`${BANK_URL}/charges`, { method: 'POST', body: String(message.value), signal })
    // The status decides: 503 is tried again, 422 is a dead letter at once.
    if (!answer.ok) throw Object.assign(new Error(`the bank says ${answer.status}`), { status: answer.status })
  },
})
process.once('SIGTERM', () => void consumer.stop())
process.once('SIGINT', () => void consumer.stop())
await consumer.start() // a start that fails ends the process with exit code 1
