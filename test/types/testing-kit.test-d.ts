import type { EachMessagePayload } from 'kafkajs'
import { describe, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import {
  attempt,
  createFakeKafka,
  expectDeadLettered,
  record,
  type ForeignRecord,
  type TestRecord,
} from '../../src/testing'

const schema = z.object({ total: z.number() })
const rec = record({ value: { total: 1 } })

describe('the helpers for tests', () => {
  it('make records that may be produced and attempted', () => {
    expectTypeOf(rec).toEqualTypeOf<TestRecord>()
    expectTypeOf<TestRecord>().toExtend<ForeignRecord>()
    createFakeKafka().produce('orders', rec)
    // @ts-expect-error a number is no value
    record({ value: 1 })
    // @ts-expect-error a value must be given
    record({ key: 'k' })
    // @ts-expect-error no such field
    record({ value: '', headrs: {} })
  })

  it('give a handler the value of its schema', () => {
    void attempt((_, { value }) => void expectTypeOf(value).toEqualTypeOf<{ total: number }>(), rec, { schema })
    void attempt((_, { value }) => void expectTypeOf(value).toEqualTypeOf<string>(), rec, { decode: () => 'text' })
    void attempt((_, { value }) => void expectTypeOf(value).toBeUnknown(), rec)
  })

  it('take a handler written for kafkajs, and the options of a consumer as they are', () => {
    const options = {
      kafka: createFakeKafka(),
      topic: 'orders',
      groupId: 'g',
      schedule: ['1m'],
      handler: () => 1,
    } as const
    void attempt(async ({ message }: EachMessagePayload) => void message.key, rec, { ...options, attempt: 2 })
  })

  it('take only questions that make sense', () => {
    const kafka = createFakeKafka()
    // @ts-expect-error no such field
    expectDeadLettered(kafka, { tier: '1m' })
    // @ts-expect-error a number is no key
    expectDeadLettered(kafka, { key: 1 })
  })
})
