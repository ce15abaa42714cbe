// Rules of your own, asked before the built-in table: what to do with which error, and because of what.
import { createResilientConsumer, deadLetterOn, retry, retryOn, type ClassifyOption } from '../src/index' // yours: 'retryline'
import { createFakeKafka } from '../src/testing' // yours: 'retryline/testing'

class CustomerUnknown extends Error {}

const classify: ClassifyOption = [
  deadLetterOn(CustomerUnknown, { because: 'the customer was deleted' }),
  retryOn({ code: 'QUOTA', message: /hourly/ }, { after: 3_600_000, because: 'the quota comes back' }),
  {
    match: { when: (_error, { attempt }) => attempt === 3 },
    verdict: 'dead-letter',
    because: 'two retries are enough',
  },
  // The table takes 404 for a refusal; here a replica lags behind.
  retryOn({ status: 404 }, { because: 'the replica lags behind' }),
  { match: { name: 'Unavailable' }, verdict: retry('a deployment is under way') },
]

const failures: Record<string, Error> = {
  deleted: new CustomerUnknown('customer 7'),
  quota: Object.assign(new Error('hourly quota used up'), { code: 'QUOTA' }),
  replica: Object.assign(new Error('no such order'), { status: 404 }),
  deploying: Object.assign(new Error('back in a minute'), { name: 'Unavailable' }),
  down: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), // no rule here: the table knows it
}

const kafka = createFakeKafka({ topics: { orders: 1 } })
const consumer = createResilientConsumer({
  kafka,
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1m', '10m', '1h'],
  topicSetup: 'create',
  classify,
  handler: async ({ message }) => {
    throw failures[String(message.key)]
  },
})
await consumer.start()
for (const name of Object.keys(failures)) kafka.produce('orders', { key: name, value: null })
await kafka.clock.advance('4h')
await consumer.stop()

for (const { key, headers } of kafka.records('orders.dlq')) {
  const history = JSON.parse(String(new Map(headers).get('x-history'))) as { attempt: number; because: string }[]
  for (const { attempt, because } of history) console.log(`${String(key).padEnd(9)} attempt ${attempt}: ${because}`)
}
