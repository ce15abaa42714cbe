// A clean stop: running handlers finish, what is done is committed, the groups are left. No signal handler is made for you.
import { createResilientConsumer } from '../src/index' // yours: 'retryline'
import { createFakeKafka } from '../src/testing' // yours: 'retryline/testing'

const kafka = createFakeKafka({ topics: { orders: 3 } })
const consumer = createResilientConsumer({
  kafka,
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1m', '10m'],
  topicSetup: 'create',
  handler: async ({ message }) => console.log(`handled ${String(message.value)}`),
})
async function stop(): Promise<void> {
  const { finished, abandoned } = await consumer.stop()
  console.log(finished ? `stopped, ${abandoned.length} records left behind` : 'the stop goes on: see the log')
}
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop())
await consumer.start()
kafka.produce('orders', { value: 'order-22' })
await kafka.clock.settle()
process.emit('SIGTERM') // your platform sends it
