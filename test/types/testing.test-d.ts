import type { Admin, Consumer, ConsumerConfig, Kafka, PartitionAssigner, Producer, ProducerConfig } from 'kafkajs'
import { PartitionAssigners, Partitioners } from 'kafkajs'
import { describe, expectTypeOf, it } from 'vitest'
import type { Clock } from '../../src/ports'
import { CLOCK } from '../../src/ports'
import { createFakeKafka, type FakeClient, type FakeKafka } from '../../src/testing'

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
    void [consumer, producer, admin]
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
