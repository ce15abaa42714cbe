/** kafkajs-async-retry as its README shows it, with a shorter delay: its default of 5 s crashes its consumer for good. */
import * as installed from 'kafkajs-async-retry'
import { createTopics, joined } from '../lib/kafka'
import { RETRIES, type System } from '../lib/system'

// CommonJS with a default export: what Node gives as the default is the module.
const { default: AsyncRetryHelper, DeadLetter } = installed.default as unknown as typeof installed

export const asyncRetry: System = async ({ kafka, brokers, topic, groupId, delay, handle, during }) => {
  const producer = kafka.producer()
  await producer.connect()
  const helper = new AsyncRetryHelper({ producer, groupId, retryDelays: [delay / 1000], maxRetries: RETRIES })
  const deadLetters = `${groupId}-dlq`
  await createTopics(brokers, [...helper.retryTopics, deadLetters])
  const consumer = kafka.consumer({ groupId })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic, ...helper.retryTopics], fromBeginning: true })
  const ready = joined(consumer)
  await consumer.run({
    eachMessage: helper.eachMessage(async ({ message, previousAttempts, isRetry, processTime }) => {
      const outcome = handle(message.value, previousAttempts + 1, isRetry ? processTime.getTime() : undefined)
      const settled = typeof outcome === 'string' ? outcome : await outcome
      if (settled === 'again') throw new Error('again, later')
      if (settled === 'bad') throw new DeadLetter('no use')
    }),
  })
  await ready
  await during()
  await consumer.disconnect()
  await producer.disconnect()
  return { reads: [topic, ...helper.retryTopics].map((read) => ({ topic: read, groupId })), deadLetters }
}
