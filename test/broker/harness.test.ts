import { existsSync } from 'node:fs'
import { Kafka, logLevel, type Consumer } from 'kafkajs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startBroker, type Broker } from '../helpers/broker'
import { describeWithBroker, describeWithOwnBrokers, unique } from '../helpers/broker-shared'

const client = (brokers: string[], retries = 10): Kafka =>
  new Kafka({ clientId: 'harness', brokers, logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50, retries } })

async function createTopic(kafka: Kafka, topic: string, replicas = 1): Promise<void> {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: replicas }], waitForLeaders: true })
  await admin.disconnect()
}

async function produce(kafka: Kafka, topic: string, values: string[]): Promise<void> {
  const producer = kafka.producer({ createPartitioner: () => () => 0 })
  await producer.connect()
  await producer.send({ topic, acks: -1, messages: values.map((value) => ({ value })) })
  await producer.disconnect()
}

/** The first `count` values of a topic. */
async function consume(kafka: Kafka, topic: string, count: number): Promise<string[]> {
  const consumer: Consumer = kafka.consumer({ groupId: unique('group'), maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const values: string[] = []
  await new Promise<void>((resolve, reject) => {
    const eachMessage = async ({ message }: { message: { value: Buffer | null } }): Promise<void> => {
      values.push(String(message.value))
      if (values.length === count) resolve()
    }
    consumer.run({ eachMessage }).catch(reject)
  })
  await consumer.disconnect()
  return values
}

const alive = (pid: number): boolean => existsSync(`/proc/${pid}`)

describeWithBroker('the shared broker', ({ brokers }) => {
  it('takes records and gives them back', async () => {
    const kafka = client(brokers)
    const topic = unique('harness')
    await createTopic(kafka, topic)
    await produce(kafka, topic, ['a', 'b'])
    expect(await consume(kafka, topic, 2)).toEqual(['a', 'b'])
  })

  it('creates no topic by itself', async () => {
    await expect(produce(client(brokers, 1), unique('typo'), ['a'])).rejects.toThrow(/does not host/)
  })
})

describeWithOwnBrokers('a broker of its own', () => {
  let broker: Broker
  let kafka: Kafka
  beforeAll(async () => {
    broker = await startBroker({ proxied: true, config: { 'message.max.bytes': 50_000 } })
    kafka = client(broker.brokers)
    await createTopic(kafka, 'kept')
  })
  afterAll(() => broker.stop())

  it('keeps its ports and records over a shutdown and over a kill', async () => {
    await produce(kafka, 'kept', ['before'])
    await broker.stopNode()
    expect(broker.pid(1)).toBeUndefined()
    await broker.startNode()
    await produce(kafka, 'kept', ['between'])
    await broker.kill()
    await broker.startNode()
    expect(await consume(kafka, 'kept', 2)).toEqual(['before', 'between'])
  })

  it('takes properties', async () => {
    await expect(produce(kafka, 'kept', ['x'.repeat(60_000)])).rejects.toMatchObject({ type: 'MESSAGE_TOO_LARGE' })
  })

  it('leaves no process and no folder after stop', async () => {
    const other = await startBroker()
    const pid = other.pid(1) ?? 0
    expect(alive(pid)).toBe(true)
    await other.stop()
    expect(alive(pid)).toBe(false)
    expect(other.logs(1)).toBe('')
  })
})
