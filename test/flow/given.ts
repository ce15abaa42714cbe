import { onTestFinished } from 'vitest'
import { consoleLogger, createResilientConsumer, type ResilientConsumerOptions } from '../../src/index'
import { createFakeKafka } from '../../src/testing'

const START = Date.UTC(2030, 0, 1)

/** A started consumer of `orders` (one partition) on a fake broker, with tiers of 1m, 10m and 1h. */
export async function shop<V>(
  options: Pick<ResilientConsumerOptions<V>, 'handler'> & Partial<ResilientConsumerOptions<V>>,
) {
  const kafka = createFakeKafka({ topics: { orders: 1, invoices: 1 }, startAt: START, stallAfter: 300 })
  const consumer = createResilientConsumer<V>({
    kafka,
    groupId: 'billing',
    topic: 'orders',
    schedule: ['1m', '10m', '1h'],
    topicSetup: 'create',
    logger: consoleLogger({ level: 'silent' }),
    ...options,
  })
  onTestFinished(async () => void (await consumer.stop()))
  await consumer.start()
  const header = (topic: string, name: string): string[] =>
    kafka.records(topic).map(({ headers }) => String(headers.find(([own]) => own === name)?.[1]))
  return { kafka, consumer, header }
}

/** Minutes since the story began. */
export const minutes = (now: number): number => (now - START) / 60_000
