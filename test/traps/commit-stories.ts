/** The traps of kafkajs, 8: batched commits. */
import type { EachBatchPayload } from 'kafkajs'
import {
  committed,
  consumerOf,
  numbered,
  outcome,
  pair,
  produce,
  running,
  transact,
  type Plan,
  type Story,
} from './staging'

export const commitStories: Record<string, Story> = {
  'trap 8: commitOffsetsIfNecessary() does nothing unless an interval or a threshold is set': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(5))
    for (const settings of [{}, { autoCommitThreshold: 2 }, { autoCommitInterval: 0 }]) {
      const groupId = stage.group(Object.keys(settings).join(''))
      const consumer = consumerOf(stage, { groupId })
      const stored = (): Promise<unknown> => committed(stage, [stage.topic()], groupId)
      let calls = 0
      await running(stage, consumer, {
        autoCommit: false,
        eachBatchAutoResolve: false,
        ...settings,
        eachBatch: async ({ resolveOffset, commitOffsetsIfNecessary, uncommittedOffsets, pause }) => {
          pause()
          resolveOffset('0')
          resolveOffset('1')
          await commitOffsetsIfNecessary()
          stage.note(await stored())
          await commitOffsetsIfNecessary(uncommittedOffsets())
          stage.note(await stored())
          calls++
        },
      })
      await stage.until(() => calls > 0)
      await consumer.disconnect()
    }
  },

  'trap 8: without auto-commit a marker at the end is passed and never committed': async (stage) => {
    await stage.create('orders')
    await transact(stage, stage.topic(), ['a', 'b'])
    const consumer = consumerOf(stage)
    let last: EachBatchPayload | undefined
    const ended: unknown[] = []
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      ended.push([payload.batchSize, payload.firstOffset, payload.lastOffset])
    })
    await stage.pass(300)
    await running(stage, consumer, {
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async (payload) => {
        last = payload
        await payload.commitOffsetsIfNecessary({
          topics: [{ topic: stage.topic(), partitions: [{ partition: 0, offset: '2' }] }],
        })
        // As one who counts records, not offsets: the marker behind them is then fetched alone.
        consumer.seek({ topic: stage.topic(), partition: 0, offset: '2' })
      },
    })
    await stage.until(() => ended.length > 1)
    await stage.pass(400)
    stage.note(ended, last?.uncommittedOffsets(), await committed(stage))
    await consumer.disconnect()
  },

  "trap 8: the end of any batch commits what any other has resolved, and so does any batch's error": async (stage) => {
    for (const fails of [false, true]) {
      const topic = stage.topic(String(fails))
      const groupId = stage.group(String(fails))
      await stage.create(String(fails), 2)
      await produce(
        stage,
        [0, 0, 0, 1].map((partition) => ({ value: 'x', partition })),
        topic,
      )
      const consumer = consumerOf(stage, { groupId, retry: { initialRetryTime: 30 } })
      let release = (): void => undefined
      const gate = new Promise<void>((resolve) => (release = resolve))
      let resolved = (): void => undefined
      const first = new Promise<void>((resolve) => (resolved = resolve))
      let others = 0
      await running(
        stage,
        consumer,
        {
          partitionsConsumedConcurrently: 2,
          eachBatchAutoResolve: false,
          eachBatch: async ({ batch, resolveOffset }) => {
            if (batch.partition === 0) {
              resolveOffset('0')
              resolved()
              return stage.gate(gate)
            }
            await stage.gate(first)
            if (others++ === 0 && fails) throw new Error('refused')
            consumer.pause([{ topic, partitions: [1] }])
          },
        },
        topic,
      )
      await stage.until(() => others > 0)
      await stage.pass(300)
      stage.note(await committed(stage, [topic], groupId))
      consumer.pause([{ topic }])
      release()
      await stage.pass(300)
      await consumer.disconnect()
    }
  },

  'trap 8: a heartbeat that is told of a rebalance commits what is resolved, without being asked': async (stage) => {
    await stage.create('orders')
    const topic = stage.topic()
    await produce(stage, numbered(5))
    const plan: Plan = { first: { [topic]: [0] } }
    const { first, second, secondComes } = pair(stage, plan)
    let entered = false
    await running(stage, first, {
      eachBatchAutoResolve: false,
      eachBatch: async ({ resolveOffset, heartbeat }) => {
        if (entered) return
        entered = true
        resolveOffset('1')
        for (let i = 0; i < 100; i++) {
          await stage.sleep(110)
          const told = (await outcome(heartbeat())) as Error
          if (!(told instanceof Error)) continue
          stage.note(told, await committed(stage))
          throw told
        }
      },
    })
    await stage.until(() => entered)
    Object.assign(plan, { first: {}, second: { [topic]: [0] } })
    const seen: string[] = []
    await secondComes({ eachMessage: async ({ message }) => void seen.push(message.offset) })
    await stage.until(() => seen.length > 2)
    stage.note(seen)
    await second.disconnect()
    await first.disconnect()
  },

  'trap 8: off by one, and never equal': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(5))
    const consumer = consumerOf(stage)
    const at = (offset: string) => [{ topic: stage.topic(), partition: 0, offset }]
    let payload: EachBatchPayload | undefined
    await running(stage, consumer, {
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async (given) => {
        given.pause()
        payload = given
      },
    })
    await stage.until(() => payload !== undefined)
    payload?.resolveOffset('2')
    await payload?.commitOffsetsIfNecessary(payload.uncommittedOffsets())
    stage.note(await committed(stage), payload?.uncommittedOffsets())
    await consumer.commitOffsets(at('2'))
    stage.note(await committed(stage), payload?.uncommittedOffsets())
    await consumer.commitOffsets(at('3'))
    stage.note(await committed(stage), payload?.uncommittedOffsets())
    await consumer.disconnect()
  },

  'trap 8: consumers of one client and group share what they take to be committed': async (stage) => {
    await stage.create('orders', 2)
    const topic = stage.topic()
    await produce(
      stage,
      [0, 0, 1].map((partition) => ({ value: 'x', partition })),
    )
    for (const shared of [true, false]) {
      const plan: Plan = { first: { [topic]: [0] }, second: { [topic]: [1] } }
      const { first, second, secondComes } = pair(
        stage,
        plan,
        ['orders'],
        shared ? stage.kafka : stage.other(),
        stage.group(String(shared)),
      )
      const payloads: Record<number, EachBatchPayload> = {}
      const config = {
        autoCommit: false,
        eachBatchAutoResolve: false,
        eachBatch: async (given: EachBatchPayload) => {
          given.pause()
          payloads[given.batch.partition] = given
        },
      }
      await running(stage, first, config)
      await secondComes(config)
      first.resume([{ topic }])
      await stage.until(() => payloads[0] !== undefined && payloads[1] !== undefined)
      await stage.pass(300)
      payloads[0]?.resolveOffset('1')
      stage.note(payloads[0]?.uncommittedOffsets())
      await payloads[1]?.commitOffsetsIfNecessary({ topics: [{ topic, partitions: [{ partition: 0, offset: '2' }] }] })
      stage.note(shared, payloads[0]?.uncommittedOffsets())
      await second.disconnect()
      await first.disconnect()
    }
  },
}
