/**
 * A hand-written retry consumer, as guides show it: what fails is sent, one record at a time, to a retry topic or to a
 * dead letter topic, with its attempt and its due time in headers; a second consumer reads the retry topic and sleeps
 * until the record in front is due. kafkajs has its defaults, and commits by itself.
 */
import type { EachMessagePayload, IHeaders } from 'kafkajs'
import { createTopics, joined } from '../lib/kafka'
import { RETRIES, type System } from '../lib/system'

class Fatal extends Error {}

const numberIn = (headers: IHeaders | undefined, name: string): number | undefined => {
  const value = headers?.[name]
  return value === undefined ? undefined : Number(String(value))
}

export const naive: System = async ({ kafka, brokers, topic, groupId, delay, handle, during }) => {
  const retries = `${topic}-retry`
  const deadLetters = `${topic}-dead-letters`
  await createTopics(brokers, [retries, deadLetters])
  const producer = kafka.producer()
  await producer.connect()

  const eachMessage = async ({ message }: EachMessagePayload): Promise<void> => {
    const attempt = numberIn(message.headers, 'attempt') ?? 1
    const due = numberIn(message.headers, 'due')
    const early = due === undefined ? 0 : due - Date.now()
    if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
    try {
      const outcome = handle(message.value, attempt, due)
      const settled = typeof outcome === 'string' ? outcome : await outcome
      if (settled === 'again') throw new Error('again, later')
      if (settled === 'bad') throw new Fatal('no use')
    } catch (error) {
      const dead = error instanceof Fatal || attempt > RETRIES
      const headers: IHeaders = dead
        ? { error: String(error) }
        : { attempt: String(attempt + 1), due: String(Date.now() + delay) }
      const copy = { key: message.key, value: message.value, headers: { ...message.headers, ...headers } }
      await producer.send({ topic: dead ? deadLetters : retries, messages: [copy] })
    }
  }

  const reads = [
    { topic, groupId },
    { topic: retries, groupId: `${groupId}-retry` },
  ]
  const consumers = await Promise.all(
    reads.map(async (read) => {
      const consumer = kafka.consumer({ groupId: read.groupId })
      await consumer.connect()
      await consumer.subscribe({ topics: [read.topic], fromBeginning: true })
      const ready = joined(consumer)
      await consumer.run({ eachMessage })
      await ready
      return consumer
    }),
  )
  await during()
  await Promise.all(consumers.map((consumer) => consumer.disconnect()))
  await producer.disconnect()
  return { reads, deadLetters }
}
