import { connect, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { Kafka, logLevel, type Admin, type ISocketFactory, type KafkaConfig } from 'kafkajs'
import { unique } from '../../../../helpers/broker-shared'
import type { Broker } from '../../../../helpers/broker'
import { plainNodes, RETRY, type NodesStory } from './stage'

const sleep: (ms: number) => Promise<void> = promisify(setTimeout)
const PRODUCE = 0

export async function onRealNodes(story: NodesStory, broker: Broker): Promise<unknown[]> {
  const ports = broker.brokers.map((address) => Number(address.split(':')[1]))
  const toCut = new Set<number>()
  const { brokers } = broker
  const client = (options: Partial<KafkaConfig> = {}): Kafka =>
    new Kafka({
      brokers,
      clientId: 'kafkajs',
      logLevel: logLevel.NOTHING,
      retry: RETRY,
      socketFactory: cutting(toCut),
      ...options,
    })
  const kafka = client()
  const prefix = `${unique('alike')}.`
  const trace: unknown[] = []
  const replicated: string[] = []
  // Patient: it follows the cluster through what the story does to it.
  const admin = client({ retry: { retries: 20, initialRetryTime: 100, maxRetryTime: 500 } }).admin()
  await admin.connect()

  async function untilTrue(what: string, look: () => Promise<boolean>): Promise<void> {
    const end = Date.now() + 20_000
    while (!(await look().catch(() => false))) {
      if (Date.now() > end) throw new Error(`not within 20 s: ${what}`)
      await sleep(50)
    }
  }

  try {
    await story({
      kafka,
      other: client,
      topic: (name = 'orders') => prefix + name,
      group: (name = 'billing') => prefix + name,
      async create(name, partitions, { replicas = 3, config = {} } = {}) {
        const replicaAssignment = Array.from({ length: partitions }, (_, partition) => ({
          partition,
          replicas: Array.from({ length: replicas }, (_, i) => 1 + ((partition + i) % 3)),
        }))
        const configEntries = Object.entries(config).map(([key, value]) => ({ name: key, value }))
        if (replicas === 3) replicated.push(prefix + name)
        await admin.createTopics({ topics: [{ topic: prefix + name, replicaAssignment, configEntries }] })
      },
      cutNextPublish: (node) => void toCut.add(ports[node - 1] ?? 0),
      async moveLeader(topic, partition, node) {
        await admin.alterPartitionReassignments({
          topics: [{ topic, partitionAssignment: [{ partition, replicas: [node] }] }],
        })
        await untilTrue(`node ${node} leads`, async () => (await leaderOf(admin, topic, partition)) === node)
      },
      async down(node) {
        await broker.stopNode(node)
        await untilTrue(`node ${node} is missed`, async () => {
          const { topics } = await admin.fetchTopicMetadata({ topics: replicated })
          return topics.every(({ partitions }) => partitions.every(({ isr }) => !isr.includes(node)))
        })
      },
      up: (node) => broker.startNode(node),
      now: () => Date.now(),
      pass: (ms) => sleep(ms),
      async until(condition) {
        const end = Date.now() + 30_000
        while (!condition()) {
          if (Date.now() > end) throw new Error('it never came to that')
          await sleep(20)
        }
      },
      sleep: (ms) => sleep(ms),
      gate: (promise) => promise,
      eventually: (promise) => promise,
      note: (...seen) => void trace.push(plainNodes(seen, prefix, ports)),
    })
  } finally {
    await admin.disconnect()
  }
  return trace
}

async function leaderOf(admin: Admin, topic: string, partition: number): Promise<number | undefined> {
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  return topics[0]?.partitions.find(({ partitionId }) => partitionId === partition)?.leader
}

/** Sockets to these ports end, once each, where a produce request would go out. */
function cutting(ports: Set<number>): ISocketFactory {
  return ({ host, port, onConnect }) => {
    const socket: Socket = connect({ host, port }, onConnect)
    const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
    socket.write = (...args: unknown[]) => {
      const bytes = args[0]
      const isProduce =
        (Buffer.isBuffer(bytes) ? bytes : Buffer.from(String(bytes), 'binary')).readInt16BE(4) === PRODUCE
      if (isProduce && ports.delete(port)) {
        setImmediate(() => socket.emit('end'))
        socket.destroy()
        return true
      }
      return write(...args)
    }
    return socket
  }
}
