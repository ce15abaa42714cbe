/** The stage on a real broker: kafkajs for what it can do, the wire for what it cannot. */
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { Kafka, logLevel, type KafkaConfig } from 'kafkajs'
import { expect, vi } from 'vitest'
import { withGuardedConnections } from '../../src/adapters/kafkajs/framing'
import type { KafkaJsLike } from '../../src/adapters/kafkajs/kafkajs-like'
import { PROCESS, systemClock } from '../../src/ports'
import { gateWith, type Stage, type StoredRecord } from './stage'
import { Wire } from './wire'

/** Generous: a starved machine is slow, and only a test that fails waits so long. ms. */
const LIMIT = 40_000
const LOOK_EVERY = 25

export async function realStage(brokers: string[]): Promise<Stage> {
  const client = (more: Partial<KafkaConfig> = {}): Kafka =>
    Object.assign(
      // What bends the client has methods of its own, and the engine leaves the connections of such a client alone.
      withGuardedConnections(
        new Kafka({
          clientId: 'contract',
          brokers,
          logLevel: logLevel.NOTHING,
          retry: { initialRetryTime: 50, retries: 8 },
          ...more,
        }) as unknown as KafkaJsLike,
      ) as unknown as Kafka,
      // Each plays a process of its own: what a dead one still has at work is no concern of the others.
      { [PROCESS]: {} },
    )
  const admin = client().admin()
  await admin.connect()
  const wires = new Map<string, Wire>()
  const leaders = new Map<string, Wire>()

  async function leaderOf(topic: string, partition: number): Promise<Wire> {
    const known = leaders.get(`${topic}/${partition}`)
    if (known) return known
    const { brokers: nodes } = await admin.describeCluster()
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    for (const { partitionId, leader } of topics[0]?.partitions ?? []) {
      const node = nodes.find(({ nodeId }) => nodeId === leader)
      if (!node) throw new Error(`${topic}/${partitionId} has no leader`)
      const address = `${node.host}:${node.port}`
      const wire = wires.get(address) ?? new Wire(node.host, node.port)
      wires.set(address, wire)
      leaders.set(`${topic}/${partitionId}`, wire)
    }
    const found = leaders.get(`${topic}/${partition}`)
    if (!found) throw new Error(`there is no ${topic}/${partition}`)
    return found
  }

  /** Metadata may know a topic, or its leader, before that broker does itself: then it is asked again. */
  const offsetsOf = (topic: string): ReturnType<typeof admin.fetchTopicOffsets> =>
    vi.waitFor(() => admin.fetchTopicOffsets(topic), { timeout: LIMIT, interval: LOOK_EVERY })

  async function ends(topic: string): Promise<Map<number, { low: bigint; high: bigint }>> {
    const found = await offsetsOf(topic)
    return new Map(
      found
        .sort((a, b) => a.partition - b.partition)
        .map(({ partition, low, high }) => [partition, { low: BigInt(low), high: BigInt(high) }]),
    )
  }

  async function committed(groupId: string, topic: string): Promise<Map<number, bigint>> {
    const [found] = await admin.fetchOffsets({ groupId, topics: [topic] })
    const partitions = [...(found?.partitions ?? [])].sort((a, b) => a.partition - b.partition)
    return new Map(partitions.map(({ partition, offset }) => [partition, BigInt(offset)]))
  }

  const stage: Stage = {
    kind: 'real',
    now: () => Date.now(),
    client: () => client(),
    breakable() {
      const open = new Set<Socket>()
      let isDown = false
      const socketFactory: KafkaConfig['socketFactory'] = ({ host, port, onConnect }) => {
        const socket = connect({ host, port, noDelay: true }, onConnect)
        open.add(socket)
        socket.once('close', () => open.delete(socket))
        if (isDown) socket.destroy(new Error('the network is down'))
        return socket
      }
      return {
        client: client({ socketFactory }),
        down() {
          isDown = true
          for (const socket of open) socket.destroy(new Error('the network is down'))
        },
        up() {
          isDown = false
        },
      }
    },
    unique: (name) => `${name}-${randomBytes(4).toString('hex')}`,
    async createTopics(topics, config = {}) {
      await admin.createTopics({
        // Not kafkajs's own wait, which fails where a busy broker does not know the new topic at once.
        waitForLeaders: false,
        topics: Object.entries(topics).map(([topic, numPartitions]) => ({
          topic,
          numPartitions,
          replicationFactor: -1,
          configEntries: Object.entries(config).map(([name, value]) => ({ name, value })),
        })),
      })
      for (const [topic, partitions] of Object.entries(topics)) {
        await vi.waitFor(
          async () => expect((await admin.fetchTopicOffsets(topic)).length, `partitions of ${topic}`).toBe(partitions),
          { timeout: LIMIT, interval: LOOK_EVERY },
        )
      }
    },
    async addPartitions(topic, count) {
      await admin.createPartitions({ topicPartitions: [{ topic, count }] })
      await vi.waitFor(async () => {
        const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
        if (topics[0]?.partitions.length !== count) throw new Error(`${topic} has not ${count} partitions yet`)
      }, LIMIT)
    },
    async remakeTopic(topic, partitions) {
      await admin.deleteTopics({ topics: [topic] })
      for (const place of leaders.keys()) if (place.startsWith(`${topic}/`)) leaders.delete(place)
      // The broker may take a moment to let go of the name.
      await vi.waitFor(() => stage.createTopics({ [topic]: partitions }), { timeout: LIMIT, interval: LOOK_EVERY })
    },
    async deleteRecords(topic, partition, below) {
      await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: below.toString() }] })
    },
    produce: async (topic, partition, records) => (await leaderOf(topic, partition)).produce(topic, partition, records),
    async records(topic) {
      const all: StoredRecord[] = []
      for (const [partition, { low, high }] of await ends(topic)) {
        const wire = await leaderOf(topic, partition)
        for (let from = low; from < high;) {
          const { records, next } = await wire.fetch(topic, partition, from)
          all.push(...records)
          if (next <= from) break
          from = next
        }
      }
      return all
    },
    committed,
    watch(group, topic) {
      const seen = new Map<number, bigint[]>()
      let on = true
      const looking = (async () => {
        while (on) {
          for (const [partition, offset] of await committed(group, topic)) {
            const before = seen.get(partition) ?? []
            if (before.at(-1) !== offset) before.push(offset)
            seen.set(partition, before)
          }
          await new Promise<void>((resolve) => systemClock.after(20, resolve))
        }
      })()
      return {
        async stop() {
          on = false
          await looking
          return seen
        },
      }
    },
    ends,
    async members(groupId) {
      const { groups } = await admin.describeGroups([groupId])
      return groups[0]?.members.map(({ memberId }) => memberId) ?? []
    },
    async until(condition, what) {
      await vi.waitFor(
        async () => {
          if (!(await condition())) throw new Error(`never happened: ${typeof what === 'string' ? what : what()}`)
        },
        { timeout: LIMIT, interval: LOOK_EVERY },
      )
    },
    during: (work) => work,
    takes: (ms) => new Promise((resolve) => systemClock.after(ms, resolve)),
    gate: () => gateWith((promise) => promise),
    async close() {
      for (const wire of wires.values()) wire.close()
      await admin.disconnect()
    },
  }
  return stage
}
