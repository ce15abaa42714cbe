/** kafkajs alone, with its defaults: no retry, no dead letter topic. It commits at the end of each batch by itself. */
import type { ConsumerConfig, EachBatchPayload, EachMessagePayload, KafkaMessage } from 'kafkajs'
import { joined } from '../lib/kafka'
import type { System } from '../lib/system'

interface RawOptions extends Partial<ConsumerConfig> {
  how: 'eachBatch' | 'eachMessage'
  partitionsConsumedConcurrently?: number
}

export const raw =
  ({ how, partitionsConsumedConcurrently = 1, ...options }: RawOptions): System =>
  async ({ kafka, topic, groupId, handle, during }) => {
    const consumer = kafka.consumer({ groupId, ...options })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    const one = async (message: KafkaMessage): Promise<void> => {
      const outcome = handle(message.value, 1, undefined)
      if (typeof outcome !== 'string') await outcome
    }
    const eachBatch = async ({ batch }: EachBatchPayload): Promise<void> => {
      for (const message of batch.messages) {
        const outcome = handle(message.value, 1, undefined)
        if (typeof outcome !== 'string') await outcome
      }
    }
    const eachMessage = ({ message }: EachMessagePayload): Promise<void> => one(message)
    const ready = joined(consumer)
    await consumer.run({ partitionsConsumedConcurrently, ...(how === 'eachBatch' ? { eachBatch } : { eachMessage }) })
    await ready
    await during()
    await consumer.stop()
    await consumer.disconnect()
    return { reads: [{ topic, groupId }] }
  }
