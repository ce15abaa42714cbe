import { Kafka, logLevel } from 'kafkajs'
import { connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createKafkajsAdmin } from '../../src/adapters/kafkajs/admin'
import { withGuardedConnections } from '../../src/adapters/kafkajs/framing'
import { createResilientConsumer, RetryableError } from '../../src/index'
import { silentLogger } from '../../src/ports'
import { until } from '../fault/until'
import { describeWithBroker, unique } from '../helpers/broker-shared'

/** So much of an answer comes through: its length, and a few bytes more. */
const HALF = 12

interface Cutter {
  readonly port: number
  readonly cuts: number
  /** The next answer on each connection there is, and on each that is made, until `calm()`, is cut. */
  cut(): void
  calm(): void
}

/** In front of one broker: passes on what comes, but for answers that it cuts in the middle. */
async function startCutter([host, port]: [string, string]): Promise<Cutter> {
  let cutting = false
  let cuts = 0
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const broker = connect({ host, port: Number(port) })
    for (const socket of [client, broker]) {
      open.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        open.delete(socket)
        client.destroy()
        broker.destroy()
      })
    }
    client.pipe(broker)
    broker.on('data', (bytes: Buffer) => {
      if (client.writableEnded) return
      if (!cutting) return void client.write(bytes)
      cuts++
      client.end(bytes.subarray(0, Math.min(HALF, bytes.length - 1)))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as { port: number }).port,
    get cuts() {
      return cuts
    },
    cut: () => void (cutting = true),
    calm: () => void (cutting = false),
  }
}

/** What the broker calls itself leads past the proxy; this client goes through it all the same. */
function through(port: number, requestTimeout: number): Kafka {
  return new Kafka({
    brokers: [`127.0.0.1:${port}`],
    requestTimeout,
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, retries: 10 },
    socketFactory: ({ onConnect }) => connect({ host: '127.0.0.1', port, noDelay: true }, onConnect),
  })
}

const LIMIT = 60_000

describeWithBroker('answers that are cut in the middle', ({ brokers }) => {
  const address = (): [string, string] => brokers[0]!.split(':') as [string, string]

  async function makeTopic(partitions = 1): Promise<string> {
    const admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin()
    const topic = unique('cut')
    await admin.connect()
    await admin.createTopics({ topics: [{ topic, numPartitions: partitions }], waitForLeaders: true })
    await admin.disconnect()
    return topic
  }

  test('an admin client answers on its next connection, without a request that times out', async () => {
    const topic = await makeTopic()
    const cutter = await startCutter(address())
    const kafka = withGuardedConnections(through(cutter.port, 60_000))
    const admin = createKafkajsAdmin(kafka)
    await admin.connect()
    onTestFinished(() => admin.disconnect())
    expect(await admin.ranges(topic)).toHaveLength(1)
    for (let i = 0; i < 3; i++) {
      cutter.cut()
      const asked = admin.ranges(topic).catch(() => undefined)
      await until('an answer is cut', () => cutter.cuts > i, LIMIT)
      cutter.calm()
      await asked
      expect(await admin.ranges(topic)).toHaveLength(1)
    }
  }, 90_000)

  test('a consumer goes on: every record is handled, and retried, whatever was cut', async () => {
    const topic = await makeTopic(2)
    const cutter = await startCutter(address())
    const producer = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).producer()
    await producer.connect()
    onTestFinished(() => producer.disconnect())
    const handled = new Set<string>()
    const events: string[] = []
    const consumer = createResilientConsumer({
      kafka: through(cutter.port, 60_000),
      groupId: unique('cut'),
      topic,
      schedule: ['100ms'],
      topicSetup: 'create',
      sessionTimeout: '10s',
      heartbeatInterval: '500ms',
      logger: silentLogger,
      handler: async ({ message }, { attempt }) => {
        if (attempt === 1) throw new RetryableError('again')
        handled.add(String(message.value))
      },
    })
    consumer.on('all', (event) => {
      if (event.type === 'crashed') events.push(JSON.stringify(event))
    })
    await consumer.start()
    onTestFinished(() => consumer.stop().then(() => undefined))
    const total = 60
    for (let n = 0; n < total; n += 10) {
      await producer.send({
        topic,
        messages: Array.from({ length: 10 }, (_, i) => ({ key: `k${i}`, value: `v${n + i}` })),
      })
      const before = cutter.cuts
      cutter.cut()
      await until('answers are cut', () => cutter.cuts > before + 1, LIMIT)
      cutter.calm()
    }
    await until('all are handled', () => handled.size === total, LIMIT)
    // No connection was given up for a request without an answer.
    expect(events.filter((text) => text.includes('not answered'))).toEqual([])
  }, 120_000)
})
