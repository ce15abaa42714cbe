import { Kafka, logLevel, type Admin, type PartitionMetadata } from 'kafkajs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startBroker, type Broker } from '../helpers/broker'
import { describeWithOwnBrokers } from '../helpers/broker-shared'
import { createTopicsEverywhere } from '../helpers/topics'

describeWithOwnBrokers('three nodes', () => {
  const topic = 'replicated'
  let broker: Broker
  let admin: Admin
  let kafka: Kafka
  beforeAll(async () => {
    broker = await startBroker({ nodes: 3 })
    const retry = { initialRetryTime: 100, retries: 20 }
    kafka = new Kafka({ clientId: 'harness', brokers: broker.brokers, logLevel: logLevel.NOTHING, retry })
    admin = kafka.admin()
    await admin.connect()
    await createTopicsEverywhere(admin, [{ topic, numPartitions: 1, replicationFactor: 3 }])
  })
  afterAll(async () => {
    await admin.disconnect()
    await broker.stop()
  })

  const partition = async (): Promise<PartitionMetadata | undefined> =>
    (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0]?.partitions[0]

  it('go on when the leader is killed, and are in sync again once it is back', async () => {
    const leader = (await partition())?.leader ?? 0
    await broker.kill(leader)
    const producer = kafka.producer({ createPartitioner: () => () => 0 })
    await producer.connect()
    await producer.send({ topic, acks: -1, messages: [{ value: 'while one is away' }] })
    await producer.disconnect()
    expect((await partition())?.leader).not.toBe(leader)
    await broker.startNode(leader)
    expect((await partition())?.isr.sort()).toEqual([1, 2, 3])
  })
})
