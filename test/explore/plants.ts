/**
 * Bugs on purpose, each at a seam of the client, never in src: what the engine would do if it were written so. `explore`
 * must find them.
 */
import type { FakeClient, FakeConsumer } from '../../src/testing'
import type { Plant } from './storm'

type Run = NonNullable<Parameters<FakeConsumer['run']>[0]>
type Payload = Parameters<NonNullable<Run['eachBatch']>>[0]

/** The consumers of a client with their batches bent on the way to the engine. */
function bending(client: FakeClient, bend: (payload: Payload, consumer: FakeConsumer) => Payload): FakeClient {
  return {
    ...client,
    consumer: (config) => {
      const consumer = client.consumer(config)
      return {
        ...consumer,
        run: ({ eachBatch, ...rest }: Run = {}) =>
          consumer.run({ ...rest, ...(eachBatch && { eachBatch: (payload) => eachBatch(bend(payload, consumer)) }) }),
      }
    },
  }
}

/** A copy counts as published before the broker has said so. */
export const settledTooSoon: Plant = (client) => ({
  ...client,
  producer: (config) => {
    const producer = client.producer(config)
    return {
      ...producer,
      sendBatch: async (batch) => {
        producer.sendBatch(batch).catch(() => undefined)
        return (batch.topicMessages ?? []).flatMap(({ topic, messages }) =>
          messages.map(({ partition = 0 }) => ({ topicName: topic, partition, errorCode: 0 })),
        )
      },
    }
  },
})

/** Due times are not looked at. */
export const neverWaits: Plant = (client) =>
  bending(client, (payload) => {
    const messages = payload.batch.messages.map((message) =>
      message.headers['x-due-at'] === undefined
        ? message
        : { ...message, headers: { ...message.headers, 'x-due-at': Buffer.from('1') } },
    )
    return { ...payload, batch: Object.assign(Object.create(payload.batch) as Payload['batch'], { messages }) }
  })

/** Commits are tried again by kafkajs, in whatever generation then is (rule 2). */
export const commitsAgain: Plant = (client) =>
  bending(client, (payload, consumer) => ({
    ...payload,
    commitOffsetsIfNecessary: (offsets) =>
      consumer.commitOffsets(
        (offsets?.topics ?? []).flatMap(({ topic, partitions }) => partitions.map((one) => ({ topic, ...one }))),
      ),
  }))

/**
 * Every batch passes for the next one of its lane, whatever it began at (rule 9). Seeks come to count one batch late, as where one
 * is on its way already: the engine sees to it that this hardly ever happens here, and must not rest on it.
 */
export const takesAnything: Plant = (client) => {
  const positions = new Map<string, string>()
  const late = new Map<string, () => void>()
  const keyOf = ({ topic, partition }: { topic: string; partition: number }): string => `${topic}/${partition}`
  return {
    ...client,
    consumer: (config) => {
      const consumer = client.consumer(config)
      return {
        ...consumer,
        seek: (where) => {
          positions.set(keyOf(where), where.offset)
          late.set(keyOf(where), () => consumer.seek(where))
        },
        run: ({ eachBatch, ...rest }: Run = {}) =>
          consumer.run({
            ...rest,
            ...(eachBatch && {
              eachBatch: async (payload) => {
                const { batch } = payload
                const fetchedOffset = positions.get(keyOf(batch)) ?? batch.fetchedOffset
                const seek = late.get(keyOf(batch))
                late.delete(keyOf(batch))
                await eachBatch({
                  ...payload,
                  batch: Object.assign(Object.create(batch) as Payload['batch'], { fetchedOffset }),
                  resolveOffset: (offset) => {
                    positions.set(keyOf(batch), String(BigInt(offset) + 1n))
                    payload.resolveOffset(offset)
                  },
                })
                seek?.()
              },
            }),
          }),
      }
    },
  }
}

/** Records of a batch are handed over backwards. */
export const backwards: Plant = (client) =>
  bending(client, (payload) => {
    const messages = [...payload.batch.messages].reverse()
    return { ...payload, batch: Object.assign(Object.create(payload.batch) as Payload['batch'], { messages }) }
  })
