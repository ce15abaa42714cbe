import { type } from 'arktype'
import { Kafka } from 'kafkajs'
import type { EachMessageHandler, KafkaMessage } from 'kafkajs'
import * as v from 'valibot'
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import type { KafkaClient, ResilientConsumerOptions, StandardSchema } from '../../src/config'

/** The signature of `createResilientConsumer`. */
declare function create<V = unknown, S extends StandardSchema | undefined = StandardSchema<V> | undefined>(
  options: ResilientConsumerOptions<V, S>,
): void

interface Order {
  id: string
  total: number
}

const base = {
  kafka: new Kafka({ brokers: ['localhost:9092'] }),
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1m'],
}

test('a kafkajs client is a client', () => {
  expectTypeOf<Kafka>().toExtend<KafkaClient>()
})

test('without decode and schema the value is unknown, and a kafkajs handler fits', () => {
  create({ ...base, handler: (_payload, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<unknown>() })
  create({ ...base, handler: (() => Promise.resolve()) satisfies EachMessageHandler })
  create({ ...base, decode: 'json', handler: (_payload, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<unknown>() })
})

test('the value is what a schema gives out: zod, with a transform', () => {
  const schema = z.object({ id: z.string(), total: z.string().transform(Number) })
  create({ ...base, schema, handler: (_payload, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<Order>() })
  create({ ...base, handler: (_payload, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<Order>(), schema })
  create({
    ...base,
    schema: schema.nullable(),
    handler: (_p, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<Order | null>(),
  })
})

test('the value is what a schema gives out: valibot and arktype', () => {
  const valibot = v.object({ id: v.string(), total: v.number() })
  create({ ...base, schema: valibot, handler: (_payload, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<Order>() })
  const arktype = type({ id: 'string', total: 'number' })
  create({ ...base, schema: arktype, handler: (_payload, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<Order>() })
})

test('the value is what decode returns, or resolves with', () => {
  create({
    ...base,
    decode: (value) => JSON.parse(String(value)) as Order,
    handler: (_payload, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<Order>(),
  })
  create({
    ...base,
    decode: async (value) => Promise.resolve(JSON.parse(String(value)) as Order),
    handler: (_payload, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<Order>(),
  })
})

test('where both are given, the schema decides', () => {
  create({
    ...base,
    decode: (value) => value?.toString('hex'),
    schema: z.object({ id: z.string(), total: z.number() }),
    handler: (_payload, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<Order>(),
  })
})

test('the type can be written out', () => {
  create<Order>({ ...base, decode: 'json', handler: (_p, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<Order>() })
  const options: ResilientConsumerOptions<Order> = {
    ...base,
    schema: z.object({ id: z.string(), total: z.number() }),
    handler: (_payload, ctx) => expectTypeOf(ctx.value).toEqualTypeOf<Order>(),
  }
  create(options)
})

test('a batch handler gets messages with their decoded values', () => {
  create({
    ...base,
    schema: z.object({ id: z.string(), total: z.number() }),
    batchHandler: ({ messages }, ctx) => {
      for (const message of messages) {
        expectTypeOf(message.decoded).toEqualTypeOf<Order>()
        expectTypeOf(message).toExtend<KafkaMessage>()
        ctx.fail(message, new Error('no'))
      }
    },
  })
  create<Order>({ ...base, batchHandler: ({ messages }) => expectTypeOf(messages[0]!.decoded).toEqualTypeOf<Order>() })
})

test('a handler for another type is refused', () => {
  // @ts-expect-error the schema gives out no Order
  create({ ...base, schema: z.string(), handler: (_payload, ctx: { value: Order }) => ctx.value })
  // @ts-expect-error decode returns no Order
  create({ ...base, decode: () => 1, handler: (_payload, ctx: { value: Order }) => ctx.value })
})
