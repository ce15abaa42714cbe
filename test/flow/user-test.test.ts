/** A user's test, as docs/testing.md shows it: through main, three tiers and the dead letter topic. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { createResilientConsumer, RetryableError, silentLogger } from '../../src/index'
import { createFakeKafka, expectDeadLettered, record, runToEnd } from '../../src/testing'

const main = async (): Promise<void> => {
  // begin: the user's test
  const kafka = createFakeKafka({ topics: { orders: 3 } })
  const options = { groupId: 'billing', topic: 'orders', schedule: ['1m', '10m', '1h'], topicSetup: 'create' } as const
  const handler = () => Promise.reject(new RetryableError('the bank is down'))
  await using consumer = createResilientConsumer({ kafka, ...options, handler, logger: silentLogger })
  await consumer.start()
  kafka.produce('orders', record({ key: 'order-17', value: { total: 42 } }))

  const { retried } = await runToEnd(kafka)
  expect(retried.map(({ delay }) => delay)).toEqual(['1m', '10m', '1h'])
  expectDeadLettered(kafka, { topic: 'orders', key: 'order-17', reason: 'exhausted', attempts: 4, error: 'the bank' })
  // end: the user's test
}

test('an order that the bank never takes is a dead letter after four attempts', main)

test('it has under 15 lines, those of the test itself included', () => {
  const source = readFileSync(resolve(import.meta.dirname, 'user-test.test.ts'), 'utf8')
  const [, lines = ''] = /\/\/ begin: the user's test\n([\s\S]*?)\n *\/\/ end/.exec(source) ?? []
  const count = lines.split('\n').filter((line) => line.trim() !== '').length + 2
  expect(count).toBeGreaterThan(8)
  expect(count).toBeLessThan(15)
})

test('it takes under 100 ms', async () => {
  // The best of a few: a busy machine makes any of them slow, and none of them fast.
  const times: number[] = []
  for (let i = 0; i < 10; i++) {
    const began = performance.now()
    await main()
    times.push(performance.now() - began)
  }
  expect(Math.min(...times)).toBeLessThan(100)
})
