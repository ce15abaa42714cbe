import type {
  Admin,
  Consumer,
  ConsumerConfig,
  Kafka,
  Logger,
  PartitionAssigner,
  Producer,
  ProducerConfig,
  Transaction,
} from 'kafkajs'
import { PartitionAssigners, Partitioners } from 'kafkajs'
import { describe, expectTypeOf, it } from 'vitest'
import type { Clock } from '../../src/ports'
import { CLOCK } from '../../src/ports'
import { createFakeKafka, type FakeClient, type FakeKafka } from '../../src/testing'

/** Methods of `Ours` that refuse arguments which `Theirs` takes: assigning a method does not ask for that. */
type Refusing<Theirs, Ours> = {
  [K in keyof Theirs & keyof Ours]: Theirs[K] extends (...args: infer A) => unknown
    ? Ours[K] extends (...args: infer B) => unknown
      ? A extends B
        ? never
        : K
      : K
    : never
}[keyof Theirs & keyof Ours]

describe('the fake is taken where kafkajs is', () => {
  const kafka = createFakeKafka()

  it('as a client', () => {
    // By assignment: kafkajs's Kafka is a class, and what is asked is whether code that takes one takes this.
    const one: Kafka = kafka
    const other: Kafka = kafka.client()
    expectTypeOf<[FakeKafka, FakeClient]>().toExtend<[Kafka, Kafka]>()
    void [one, other]
  })

  it('by its parts', () => {
    const consumer: Consumer = kafka.consumer({ groupId: 'g' })
    const producer: Producer = kafka.producer()
    const admin: Admin = kafka.admin()
    const transaction: Promise<Transaction> = kafka.producer({ transactionalId: 't', idempotent: true }).transaction()
    void [consumer, producer, admin, transaction.catch(() => undefined)]
  })

  it('by the logger, and by a transaction', async () => {
    expectTypeOf(kafka.logger()).toExtend<Logger>()
    const transaction: Transaction = await kafka.producer().transaction()
    void transaction
  })

  it('with all that kafkajs takes', () => {
    type Broken = { createTopics(a: { topics: { topic: string; only: 1 }[] }): Promise<boolean> }
    expectTypeOf<Refusing<Admin, Broken>>().toEqualTypeOf<'createTopics'>()
    type Transactions = ReturnType<ReturnType<FakeKafka['producer']>['transaction']>
    expectTypeOf<Refusing<Kafka, FakeKafka>>().toEqualTypeOf<never>()
    expectTypeOf<Refusing<Consumer, ReturnType<FakeKafka['consumer']>>>().toEqualTypeOf<never>()
    expectTypeOf<Refusing<Producer, ReturnType<FakeKafka['producer']>>>().toEqualTypeOf<never>()
    expectTypeOf<Refusing<Transaction, Awaited<Transactions>>>().toEqualTypeOf<never>()
    expectTypeOf<Refusing<Admin, ReturnType<FakeKafka['admin']>>>().toEqualTypeOf<never>()
    expectTypeOf<Refusing<Logger, ReturnType<FakeKafka['logger']>>>().toEqualTypeOf<never>()
  })

  it('with the settings written for kafkajs', () => {
    const assigner: PartitionAssigner = PartitionAssigners.roundRobin
    const consumer: ConsumerConfig = { groupId: 'g', partitionAssigners: [assigner], retry: { retries: 3 } }
    const producer: ProducerConfig = { createPartitioner: Partitioners.DefaultPartitioner }
    kafka.consumer(consumer)
    kafka.producer(producer)
  })

  it('with handlers written for kafkajs', () => {
    const handler: Parameters<Consumer['run']>[0] = { eachMessage: async ({ message }) => void message.key }
    void kafka.consumer({ groupId: 'g' }).run(handler)
  })

  it('and carries its clock', () => {
    expectTypeOf(kafka.clock).toExtend<Clock>()
    expectTypeOf(kafka[CLOCK]).toExtend<Clock>()
  })
})
