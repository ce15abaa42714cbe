import type { Consumer, EachBatchPayload, PartitionAssigner } from 'kafkajs'
import { encodeAssignment } from '../../../../src/testing/member-protocol'
import { committed, consumerOf, noteEvents, numbered, outcome, produce, type Stage, type Story } from './stage'

const ignore = async (): Promise<void> => undefined

async function started(stage: Stage, consumer: Consumer, topic = stage.topic()): Promise<Promise<void>> {
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  return consumer.run({ eachMessage: ignore })
}

function joinsOf(consumer: Consumer): { count: number } {
  const joins = { count: 0 }
  consumer.on(consumer.events.GROUP_JOIN, () => void joins.count++)
  return joins
}

/** Ids of members are random on one stage, so of a share only its size is the same. */
function noteShares(stage: Stage, name: string, consumer: Consumer): void {
  consumer.on(consumer.events.REBALANCING, () => stage.note(name, 'rebalancing'))
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    const sizes = Object.values(payload.memberAssignment).map((partitions) => partitions.length)
    stage.note(name, 'joined', { ...payload, memberAssignment: sizes, duration: typeof payload.duration })
  })
}

/** An assigner whose members say in their metadata which topic they want all of. */
const wanting =
  (topic: string, all: string[]): PartitionAssigner =>
  ({ cluster }) => ({
    name: 'Wanting',
    version: 0,
    async assign({ members }) {
      await cluster.addMultipleTargetTopics(all)
      return members.map(({ memberId, memberMetadata }) => ({
        memberId,
        memberAssignment: encodeAssignment({ [memberMetadata.toString()]: [0] }),
      }))
    },
    protocol: () => ({ name: 'Wanting', metadata: Buffer.from(topic) }),
  })

export const groupStories: Record<string, Story> = {
  'a second member comes and goes': async (stage) => {
    await stage.create('orders', 4)
    const first = consumerOf(stage)
    const second = consumerOf(stage, {}, stage.other())
    noteShares(stage, 'first', first)
    const [joins, joined] = [joinsOf(first), joinsOf(second)]
    await started(stage, first)
    const coming = started(stage, second)
    await stage.until(() => joins.count === 2 && joined.count === 1)
    await coming
    await second.disconnect()
    await stage.until(() => joins.count === 3)
    await stage.pass(200)
    await first.disconnect()
  },

  'a listener of GROUP_JOIN that throws kills the consumer, one that rejects does not': async (stage) => {
    await stage.create('orders')
    const one = consumerOf(stage)
    noteEvents(stage, one)
    one.on(one.events.GROUP_JOIN, () => {
      throw new Error('thrown by a listener')
    })
    stage.note(await outcome(started(stage, one)))
    await stage.pass(300)
    await one.disconnect()
    const other = consumerOf(stage, { groupId: stage.group('other') })
    other.on(other.events.GROUP_JOIN, () => Promise.reject(new Error('rejected by a listener')) as unknown as void)
    stage.note(await outcome(started(stage, other)))
    await stage.pass(200)
    await other.disconnect()
  },

  'consumer.commitOffsets: what is stored, and what the event carries': async (stage) => {
    await stage.create('orders', 2)
    const consumer = consumerOf(stage)
    noteEvents(stage, consumer)
    await started(stage, consumer)
    await stage.pass(200)
    const at = (partition: number) => ({ topic: stage.topic(), partition, offset: '1' })
    stage.note(await outcome(consumer.commitOffsets([{ ...at(0), metadata: 'note' }, at(1)])))
    stage.note(await committed(stage))
    await consumer.disconnect()
  },

  'odd commits: unowned, unknown, too much metadata, lower, negative': async (stage) => {
    await stage.create('orders')
    await stage.create('other')
    await produce(stage, numbered(1))
    const consumer = consumerOf(stage)
    let payload: EachBatchPayload | undefined
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await consumer.run({ autoCommit: false, eachBatch: async (given) => void (payload = given) })
    await stage.until(() => payload !== undefined)
    const both = async (): Promise<unknown> => [await committed(stage), await committed(stage, [stage.topic('other')])]
    const commit = (topic: string, ...partitions: { partition: number; offset: string; metadata?: string }[]) =>
      outcome(async () => payload?.commitOffsetsIfNecessary({ topics: [{ topic, partitions }] }))
    stage.note('unowned', await commit(stage.topic('other'), { partition: 0, offset: '7' }))
    stage.note('unknown', await commit(stage.topic(), { partition: 9, offset: '7' }, { partition: 0, offset: '1' }))
    stage.note('unknown', await commit(stage.topic('missing'), { partition: 0, offset: '7' }), await both())
    for (const metadata of ['x'.repeat(4096), 'ä'.repeat(4096), 'x'.repeat(4097)]) {
      stage.note('metadata', await commit(stage.topic(), { partition: 0, offset: '1', metadata }))
    }
    const partitions = [{ partition: 0, offset: '0', metadata: 'x'.repeat(4097) }]
    const topics = [
      { topic: stage.topic(), partitions },
      { topic: stage.topic('other'), partitions: [{ partition: 0, offset: '9' }] },
    ]
    stage.note('one of two', await outcome(async () => payload?.commitOffsetsIfNecessary({ topics })))
    stage.note(await both())
    stage.note('lower', await commit(stage.topic(), { partition: 0, offset: '0' }), await both())
    stage.note('negative', await commit(stage.topic(), { partition: 0, offset: '-5' }), await both())
    await consumer.disconnect()
  },

  'a log cut above the position: kafkajs commits -2 or -1 and tells nobody': async (stage) => {
    for (const fromBeginning of [true, false]) {
      const topic = stage.topic(String(fromBeginning))
      await stage.create(String(fromBeginning))
      await produce(stage, numbered(6), topic)
      const admin = stage.kafka.admin()
      await admin.connect()
      await admin.fetchTopicOffsets(topic)
      await admin.setOffsets({ groupId: stage.group(), topic, partitions: [{ partition: 0, offset: '1' }] })
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '3' }] })
      stage.note(await admin.fetchTopicOffsets(topic))
      const consumer = consumerOf(stage)
      noteEvents(stage, consumer)
      const seen: string[] = []
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning })
      await consumer.run({ autoCommit: false, eachMessage: async ({ message }) => void seen.push(message.offset) })
      await stage.pass(1500)
      stage.note(seen, await committed(stage, [topic]))
      await produce(stage, [{ value: 'new' }], topic)
      await stage.pass(500)
      stage.note(seen)
      await consumer.disconnect()
      await admin.disconnect()
    }
  },

  'a stop waits for the handler; what can and cannot be committed meanwhile': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(2))
    const consumer = consumerOf(stage)
    noteEvents(stage, consumer)
    let entered = false
    let release = (): void => undefined
    const gate = new Promise<void>((resolve) => (release = resolve))
    const at = (offset: string) => ({ topic: stage.topic(), partition: 0, offset })
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatch: async ({ isRunning, commitOffsetsIfNecessary }) => {
        entered = true
        await stage.gate(gate)
        stage.note('running', isRunning(), await outcome(consumer.commitOffsets([at('1')])), await committed(stage))
        await commitOffsetsIfNecessary({ topics: [{ topic: stage.topic(), partitions: [at('2')] }] })
      },
    })
    await stage.until(() => entered)
    const stopping = consumer.stop()
    stage.note('shared', stopping === consumer.stop())
    release()
    await stopping
    stage.note(await committed(stage))
    await consumer.disconnect()
    await consumer.disconnect()
    await consumer.connect()
    await produce(stage, [{ value: 'later' }])
    let again = 0
    await consumer.run({ eachMessage: async ({ message }) => stage.note('again', message.offset, ++again) })
    await stage.until(() => again === 1)
    await stage.pass(200)
    await consumer.disconnect()
  },

  'a stop before the first join does not reach it': async (stage) => {
    await stage.create('orders')
    const consumer = consumerOf(stage)
    const joins = joinsOf(consumer)
    let handled = 0
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    const running = consumer.run({ eachMessage: async () => void handled++ })
    stage.note(await outcome(consumer.stop()))
    await running
    await produce(stage, numbered(1))
    await stage.pass(1500)
    stage.note('handled after the stop', handled, joins.count)
    stage.note(await outcome(() => consumer.seek({ topic: stage.topic(), partition: 0, offset: '0' })))
    await consumer.disconnect()
    stage.note('disconnected')
  },

  'a handler without heartbeats loses its session, and its record comes again': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(1))
    const consumer = consumerOf(stage, { sessionTimeout: 6000, heartbeatInterval: 1000 })
    noteEvents(stage, consumer)
    let calls = 0
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ message }) => {
        stage.note('call', message.offset)
        if (++calls === 1) await stage.sleep(9500)
      },
    })
    await stage.until(() => calls === 2)
    await stage.pass(300)
    await consumer.disconnect()
  },

  'a heartbeat in a handler tells of a rebalance; commits are still taken': async (stage) => {
    await stage.create('orders', 2)
    await produce(stage, [{ value: 'x', partition: 0 }])
    const first = consumerOf(stage, { heartbeatInterval: 100 })
    const second = consumerOf(stage, { heartbeatInterval: 100 }, stage.other())
    noteShares(stage, 'first', first)
    let entered = false
    await first.connect()
    await first.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await first.run({
      autoCommit: false,
      eachBatch: async ({ heartbeat, commitOffsetsIfNecessary }) => {
        if (entered) return
        entered = true
        const topics = [{ topic: stage.topic(), partitions: [{ partition: 0, offset: '1' }] }]
        for (let i = 0; i < 40; i++) {
          await stage.sleep(120)
          const told = (await outcome(heartbeat())) as Error
          if (!(told instanceof Error)) continue
          stage.note(told, await outcome(commitOffsetsIfNecessary({ topics })))
          throw told
        }
      },
    })
    await stage.until(() => entered)
    const coming = started(stage, second)
    await stage.pass(2500)
    await coming
    await second.disconnect()
    await stage.pass(500)
    await first.disconnect()
  },

  'new partitions are found when the metadata is old': async (stage) => {
    await stage.create('orders')
    const consumer = consumerOf(stage, { metadataMaxAge: 1000 })
    noteEvents(stage, consumer)
    const joins = joinsOf(consumer)
    await started(stage, consumer)
    const admin = stage.kafka.admin()
    await admin.connect()
    await admin.createPartitions({ topicPartitions: [{ topic: stage.topic(), count: 3 }] })
    await admin.disconnect()
    await stage.until(() => joins.count === 2)
    await stage.pass(200)
    await consumer.disconnect()
  },

  'a topic deleted under its consumer': async (stage) => {
    await stage.create('orders')
    const consumer = consumerOf(stage, { metadataMaxAge: 500, retry: { retries: 1, initialRetryTime: 50 } })
    noteEvents(stage, consumer)
    let crashes = 0
    consumer.on(consumer.events.CRASH, () => void crashes++)
    await started(stage, consumer)
    const admin = stage.kafka.admin()
    await admin.connect()
    await admin.deleteTopics({ topics: [stage.topic()] })
    await admin.disconnect()
    await stage.until(() => crashes === 1)
    await consumer.disconnect()
  },

  'assigners: how they are called, and what a group does that has none in common': async (stage) => {
    await stage.create('orders', 2)
    const named =
      (name: string): PartitionAssigner =>
      ({ groupId, cluster }) => ({
        name,
        version: 3,
        async assign({ members, topics }) {
          const known = cluster.findTopicPartitionMetadata(stage.topic()).map(({ partitionId }) => partitionId)
          stage.note('assign', name, groupId, members.length, members[0]?.memberMetadata, topics, known.sort())
          return []
        },
        protocol({ topics }) {
          stage.note('protocol', name, topics)
          return { name, metadata: Buffer.from([0, 3, 0, 0, 0, 0, 255, 255, 255, 255]) }
        },
      })
    const one = consumerOf(stage, { partitionAssigners: [named('One')] })
    noteEvents(stage, one)
    await started(stage, one)
    await stage.pass(300)
    const other = consumerOf(stage, { partitionAssigners: [named('Other')], retry: { retries: 0 } }, stage.other())
    noteEvents(stage, other, 'other ')
    stage.note(await outcome(started(stage, other)))
    await stage.pass(300)
    await other.disconnect()
    await one.disconnect()
  },

  'two members of one client with topics of their own': async (stage) => {
    await stage.create('a')
    await stage.create('b')
    const all = [stage.topic('a'), stage.topic('b')]
    let crashes = 0
    const members: Consumer[] = []
    for (const topic of all) {
      const member = consumerOf(stage, { partitionAssigners: [wanting(topic, all)] })
      member.on(member.events.CRASH, () => void crashes++)
      members.push(member)
    }
    const [a, b] = members as [Consumer, Consumer]
    const joins = joinsOf(b)
    await started(stage, a, all[0])
    const coming = started(stage, b, all[1])
    await stage.until(() => joins.count === 1)
    await coming
    for (const topic of all) await produce(stage, numbered(1), topic)
    await stage.pass(1500)
    stage.note('crashes', crashes, await committed(stage, all))
    await a.disconnect()
    await b.disconnect()
  },
}
