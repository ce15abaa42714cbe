/** The stage on the fake broker: time moves only here. */
import { createFakeKafka } from '../../src/testing'
import { gateWith, type Stage } from './stage'

/** How far time moves between two looks, and how far at most, ms. */
const STEP = 20
const LIMIT = 600_000

let names = 0

export async function fakeStage(): Promise<Stage> {
  const kafka = createFakeKafka()
  const { clock } = kafka

  const stage: Stage = {
    kind: 'fake',
    now: () => clock.now(),
    client: () => kafka.client(),
    // The whole broker: a stage has one test at a time.
    breakable: () => ({ client: kafka.client(), down: () => kafka.broker.down(), up: () => kafka.broker.up() }),
    unique: (name) => `${name}-${++names}`,
    async createTopics(topics, config = {}) {
      for (const [name, partitions] of Object.entries(topics)) kafka.createTopic(name, { partitions, config })
    },
    async addPartitions(topic, total) {
      const [first] = [await stage.ends(topic)]
      kafka.addPartitions(topic, total - first.size)
    },
    async remakeTopic(topic, partitions) {
      await admin.deleteTopics({ topics: [topic] })
      kafka.createTopic(topic, { partitions })
    },
    async deleteRecords(topic, partition, below) {
      kafka.deleteRecords(topic, partition, below)
    },
    async produce(topic, partition, records) {
      const offsets = records.map((record) => kafka.produce(topic, { ...record, partition }).offset)
      return offsets[0] ?? -1n
    },
    records: async (topic) => kafka.records(topic),
    async committed(group, topic) {
      const found = kafka.committed(group, topic)
      const ends = await stage.ends(topic)
      return new Map([...ends.keys()].map((partition) => [partition, found.get(partition)?.offset ?? -1n]))
    },
    watch(group, topic) {
      const from = kafka.commits(group, topic).length
      return {
        async stop() {
          const seen = new Map<number, bigint[]>()
          for (const { partition, offset } of kafka.commits(group, topic).slice(from)) {
            seen.set(partition, [...(seen.get(partition) ?? []), offset])
          }
          return seen
        },
      }
    },
    async ends(topic) {
      const found = await admin.fetchTopicOffsets(topic)
      return new Map(
        [...found]
          .sort((a, b) => a.partition - b.partition)
          .map(({ partition, low, high }) => [partition, { low: BigInt(low), high: BigInt(high) }]),
      )
    },
    members: async (group) => kafka.broker.members(group).map(({ memberId }) => memberId),
    async until(condition, what) {
      await clock.settle()
      for (let moved = 0; !(await condition()); moved += STEP) {
        if (moved >= LIMIT) throw new Error(`never happened: ${typeof what === 'string' ? what : what()}`)
        await clock.advance(STEP)
      }
    },
    async during(work) {
      let done = false
      const ended = work.finally(() => {
        done = true
      })
      ended.catch(() => undefined)
      await stage.until(() => done, 'the end of what the test waits for')
      return ended
    },
    takes: (ms) => clock.sleep(ms),
    gate: () => gateWith((promise) => clock.park(promise)),
    close: () => admin.disconnect(),
  }
  const admin = kafka.admin()
  await admin.connect()
  return stage
}
