// Many records at once: a bulk insert that says which rows were refused. Only those are retried or dead-lettered.
import { createResilientConsumer, NonRetryableError, RetryableError } from '../src/index' // yours: 'retryline'
import { createFakeKafka } from '../src/testing' // yours: 'retryline/testing'

interface Row {
  id: number
  total: number
}

/** The database of this example: refuses a row without a total for good, and row 7 the first time. */
const locked = new Set([7])
async function insert(rows: readonly Row[]): Promise<{ index: number; isLocked: boolean }[]> {
  const refused = rows.flatMap(({ id, total }, index) =>
    locked.delete(id) ? [{ index, isLocked: true }] : total > 0 ? [] : [{ index, isLocked: false }],
  )
  console.log(`${rows.length} rows, ${refused.length} refused`)
  return refused
}

const kafka = createFakeKafka({ topics: { orders: 1 } })
const consumer = createResilientConsumer<Row>({
  kafka,
  groupId: 'warehouse',
  topic: 'orders',
  schedule: ['1m', '10m'],
  topicSetup: 'create',
  decode: 'json',
  batch: { maxRecords: 50, linger: '20ms' },
  batchHandler: async ({ messages }, ctx) => {
    const refused = await insert(messages.map(({ decoded }) => decoded))
    for (const { index, isLocked } of refused) {
      ctx.fail(index, isLocked ? new RetryableError('the row is locked') : new NonRetryableError('no total'))
    }
  },
})
await consumer.start()
for (let id = 0; id < 100; id++) kafka.produce('orders', { value: JSON.stringify({ id, total: id === 42 ? 0 : 10 }) })
await kafka.clock.advance('2m')
await consumer.stop()

for (const { value } of kafka.records('orders.dlq')) console.log(`dead: ${String(value)}`)
