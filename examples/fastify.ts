// In a Fastify service: probes for liveness and readiness, and a clean stop on SIGTERM.
import Fastify from 'fastify'
import { Kafka } from 'kafkajs'
import { createResilientConsumer } from '../src/index' // yours: 'retryline'

const { KAFKA_BROKERS = 'localhost:9092', BANK_URL = 'http://localhost:8080', NODE_ENV, PORT = '3000' } = process.env
const app = Fastify({ logger: true })

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

app.get('/live', (_request, reply) => reply.code(consumer.health().status === 'stopped' ? 503 : 200).send())
app.get('/ready', (_request, reply) => {
  const health = consumer.health()
  return reply.code(['ok', 'paused'].includes(health.status) ? 200 : 503).send(health)
})
app.addHook('onClose', () => consumer.stop())
process.once('SIGTERM', () => void app.close())
process.once('SIGINT', () => void app.close())

await app.listen({ host: '0.0.0.0', port: Number(PORT) })
await consumer.start() // not in onReady, which Fastify gives ten seconds
