// In an Express service: probes for liveness and readiness, and a clean stop on SIGTERM.
import express from 'express'
import { Kafka } from 'kafkajs'
import { createResilientConsumer } from '../src/index' // yours: 'retryline'

const { KAFKA_BROKERS = 'localhost:9092', BANK_URL = 'http://localhost:8080', NODE_ENV, PORT = '3000' } = process.env

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

const app = express()
app.get('/live', (_request, response) => {
  response.sendStatus(consumer.health().status === 'stopped' ? 503 : 200)
})
app.get('/ready', (_request, response) => {
  const health = consumer.health()
  response.status(['ok', 'paused'].includes(health.status) ? 200 : 503).json(health)
})

const server = app.listen(Number(PORT))
const stop = async () => {
  await consumer.stop() // meanwhile /ready answers 503, status 'stopping'
  server.close()
}
process.once('SIGTERM', () => void stop())
process.once('SIGINT', () => void stop())
await consumer.start() // until then /ready answers 503, status 'starting'
