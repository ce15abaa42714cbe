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

const read = (path: string): string => readFileSync(resolve(import.meta.dirname, path), 'utf8')
const [, lines = ''] = /\/\/ begin: the user's test\n([\s\S]*?)\n *\/\/ end/.exec(read('user-test.test.ts')) ?? []

test('it is the one in the docs', () => {
  expect(read('../../docs/testing.md')).toContain(`async () => {\n${lines}\n})\n`)
})

test('it has under 15 lines, those of the test itself included', () => {
  const count = lines.split('\n').filter((line) => line.trim() !== '').length + 2
  expect(count).toBeGreaterThan(8)
  expect(count).toBeLessThan(15)
})

test('it takes under 100 ms', async () => {
  // Processor time: on a machine of which others take a part it is what the test would take alone. The best of a few.
  const times: number[] = []
  for (let i = 0; i < 10; i++) {
    const before = process.cpuUsage()
    await main()
    const { user, system } = process.cpuUsage(before)
    times.push((user + system) / 1000)
  }
  expect(Math.min(...times)).toBeLessThan(100)
})
