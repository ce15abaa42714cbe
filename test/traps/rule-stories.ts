/** Facts of kafkajs that the engine's rules rest on (see test/broker/rules.test.ts), as far as the fake copies them. */
import type { Consumer, EachBatchPayload } from 'kafkajs'
import {
  committed,
  consumerOf,
  ignore,
  joinsOf,
  noteEvents,
  numbered,
  outcome,
  produce,
  running,
  steered,
  type Plan,
  type Stage,
  type Story,
} from './staging'

async function cut(stage: Stage, offset: string): Promise<void> {
  const admin = stage.kafka.admin()
  await admin.connect()
  await admin.fetchTopicMetadata({ topics: [stage.topic()] })
  await admin.deleteTopicRecords({ topic: stage.topic(), partitions: [{ partition: 0, offset }] })
  await admin.disconnect()
}

export const ruleStories: Record<string, Story> = {
  'rule 1: where the log was cut kafkajs commits -2 over offset and metadata': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(10))
    const before = consumerOf(stage)
    await running(stage, before, { autoCommit: false, eachMessage: ignore })
    await before.commitOffsets([{ topic: stage.topic(), partition: 0, offset: '5', metadata: 'a note' }])
    stage.note(await committed(stage))
    await before.disconnect()
    await cut(stage, '8')
    const consumer = consumerOf(stage)
    const fetched: unknown[] = []
    consumer.on(consumer.events.COMMIT_OFFSETS, () => stage.note('told of a commit'))
    await running(stage, consumer, {
      autoCommit: false,
      eachBatch: async ({ batch, pause }) => {
        fetched.push([(batch as any).fetchedOffset, batch.firstOffset()])
        pause()
      },
    })
    await stage.until(() => fetched.length > 0)
    stage.note(fetched, await committed(stage))
    await consumer.disconnect()
  },

  "rule 2: consumer.commitOffsets is tried again in the next generation, over the new owner's; the payload is not":
    async (stage) => {
      await stage.create('orders', 2)
      const [topic, later] = [stage.topic(), stage.topic('later')]
      await produce(
        stage,
        numbered(3).map((one) => ({ ...one, partition: 0 })),
      )
      const plan: Plan = { first: { [topic]: [0, 1] } }
      const member = (name: string, kafka: Stage['kafka']): Consumer =>
        consumerOf(
          stage,
          {
            partitionAssigners: [steered(plan, [topic], name)],
            heartbeatInterval: 100,
            retry: { initialRetryTime: 3000, factor: 0 },
          },
          kafka,
        )
      const [first, second] = [member('first', stage.kafka), member('second', stage.other())]
      const taken: { mine?: EachBatchPayload; theirs?: EachBatchPayload } = {}
      const take = (keep: (payload: EachBatchPayload) => void) => ({
        autoCommit: false,
        eachBatchAutoResolve: false,
        eachBatch: async (payload: EachBatchPayload) => {
          payload.pause()
          keep(payload)
        },
      })
      await running(
        stage,
        first,
        take((payload) => (taken.mine = payload)),
      )
      await stage.until(() => taken.mine !== undefined)
      // A topic that is not there yet makes the broker refuse with an error that kafkajs tries again.
      const offsets = (offset: string) => [
        { topic, partitions: [{ partition: 0, offset }] },
        { topic: later, partitions: [{ partition: 0, offset: '0' }] },
      ]
      const flat = offsets('1').flatMap((one) => one.partitions.map((entry) => ({ topic: one.topic, ...entry })))
      const byConsumer = outcome(first.commitOffsets(flat))
      stage.note(
        'the payload',
        await outcome(async () => taken.mine?.commitOffsetsIfNecessary({ topics: offsets('1') })),
      )
      stage.note(await committed(stage))
      Object.assign(plan, { first: { [topic]: [1] }, second: { [topic]: [0] } })
      const joined = joinsOf(second)
      const coming = running(
        stage,
        second,
        take((payload) => (taken.theirs = payload)),
      )
      await stage.until(() => joined.count > 0 && taken.theirs !== undefined)
      await coming
      await stage.create('later')
      await taken.theirs?.commitOffsetsIfNecessary({ topics: [{ topic, partitions: [{ partition: 0, offset: '3' }] }] })
      stage.note(await committed(stage))
      stage.note('the consumer', await stage.eventually(byConsumer), await committed(stage))
      await second.disconnect()
      await first.disconnect()
    },

  'rule 4: a commit from inside the first GROUP_JOIN resolves and commits nothing': async (stage) => {
    await stage.create('orders')
    const consumer = consumerOf(stage)
    const at = [{ topic: stage.topic(), partition: 0, offset: '0' }]
    let early: Promise<unknown> | undefined
    consumer.on(consumer.events.COMMIT_OFFSETS, () => stage.note('told of a commit'))
    consumer.on(consumer.events.GROUP_JOIN, () => void (early ??= outcome(consumer.commitOffsets(at))))
    await running(stage, consumer, { autoCommit: false, eachMessage: ignore })
    await stage.until(() => early !== undefined)
    stage.note(await early, await committed(stage))
    stage.note(await outcome(consumer.commitOffsets(at)), await committed(stage))
    await consumer.disconnect()
  },

  'rule 5: a consumer that a listener killed can be connected and run again': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(1))
    // The member that died has not left the group: the next one waits for its session to end.
    const consumer = consumerOf(stage, { sessionTimeout: 6000 })
    noteEvents(stage, consumer)
    let joins = 0
    let crashed = false
    let seen = 0
    consumer.on(consumer.events.CRASH, () => void (crashed = true))
    consumer.on(consumer.events.GROUP_JOIN, () => {
      if (joins++ === 0) throw new TypeError('a bug in a listener')
    })
    await running(stage, consumer, { eachMessage: async () => void seen++ })
    await stage.until(() => crashed)
    await stage.pass(300)
    stage.note('again', joins, seen)
    await consumer.connect()
    await stage.eventually(consumer.run({ eachMessage: async () => void seen++ }))
    await stage.until(() => seen > 0)
    await stage.pass(200)
    await consumer.disconnect()
  },

  'rule 5: after a rejoin a member starts again at the committed offset': async (stage) => {
    await stage.create('orders')
    const topic = stage.topic()
    await produce(stage, numbered(4))
    const plan: Plan = { first: { [topic]: [0] } }
    const assigners = (name: string) => ({ partitionAssigners: [steered(plan, [topic], name)], heartbeatInterval: 100 })
    const first = consumerOf(stage, assigners('first'))
    const second = consumerOf(stage, assigners('second'), stage.other())
    const [joins, joined] = [joinsOf(first), joinsOf(second)]
    const seen: string[] = []
    await running(stage, first, {
      autoCommit: false,
      eachMessage: async ({ message }) => void seen.push(message.offset),
    })
    await stage.until(() => seen.length === 4)
    await first.commitOffsets([{ topic, partition: 0, offset: '2' }])
    const coming = running(stage, second, { eachMessage: ignore })
    await stage.until(() => joins.count === 2 && joined.count === 1)
    await coming
    await stage.until(() => seen.length === 6)
    stage.note(seen)
    await second.disconnect()
    await first.disconnect()
  },

  'rule 10: a seek below the start of the log begins at the start, and commits -2, each time': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(10))
    await cut(stage, '8')
    const consumer = consumerOf(stage)
    const fetched: unknown[] = []
    await running(stage, consumer, {
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async ({ batch, pause }) => {
        fetched.push([(batch as any).fetchedOffset, batch.firstOffset()])
        if (fetched.length < 4) consumer.seek({ topic: stage.topic(), partition: 0, offset: '3' })
        else pause()
      },
    })
    await stage.until(() => fetched.length > 3)
    stage.note(fetched, await committed(stage))
    await consumer.disconnect()
  },

  'rule 13: a commit sent at REBALANCING is taken, and the new owner begins there': async (stage) => {
    await stage.create('orders')
    const topic = stage.topic()
    await produce(stage, numbered(5))
    const plan: Plan = { first: { [topic]: [0] } }
    const assigners = (name: string) => ({ partitionAssigners: [steered(plan, [topic], name)], heartbeatInterval: 100 })
    const first = consumerOf(stage, assigners('first'))
    const second = consumerOf(stage, assigners('second'), stage.other())
    let payload: EachBatchPayload | undefined
    let told: Promise<unknown> | undefined
    const topics = [{ topic, partitions: [{ partition: 0, offset: '3' }] }]
    first.on(first.events.REBALANCING, () => {
      told ??= outcome(async () => payload?.commitOffsetsIfNecessary({ topics }))
    })
    await running(stage, first, { autoCommit: false, eachBatch: async (given) => void (payload = given) })
    await stage.until(() => payload !== undefined)
    Object.assign(plan, { first: {}, second: { [topic]: [0] } })
    const seen: string[] = []
    const coming = running(stage, second, { eachMessage: async ({ message }) => void seen.push(message.offset) })
    await stage.until(() => seen.length > 0)
    await coming
    await stage.until(() => seen.includes('4'))
    stage.note(await told, seen)
    await second.disconnect()
    await first.disconnect()
  },

  'rule 20: a disconnect right after run() does not keep the member out of the group': async (stage) => {
    await stage.create('orders')
    const consumer = consumerOf(stage)
    const joins = joinsOf(consumer)
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    const starting = consumer.run({ eachMessage: ignore })
    stage.note(await outcome(consumer.stop()), joins.count)
    await starting
    stage.note(joins.count, await consumer.describeGroup().then(({ state, members }) => [state, members.length]))
    await stage.pass(200)
    await consumer.disconnect()
  },
}
