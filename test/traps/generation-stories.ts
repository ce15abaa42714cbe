/** The traps of kafkajs, 6 and 7: what outlives a generation or a crash, and what does not. */
import type { EachBatchPayload } from 'kafkajs'
import {
  committed,
  consumerOf,
  ignore,
  joinsOf,
  numbered,
  outcome,
  pair,
  produce,
  running,
  type Plan,
  type Story,
} from './staging'

export const generationStories: Record<string, Story> = {
  'trap 6: a pause survives a rebalance, and is hidden while its partition is away': async (stage) => {
    await stage.create('orders', 2)
    const topic = stage.topic()
    const plan: Plan = { first: { [topic]: [0, 1] } }
    const { first, secondComes, secondGoes } = pair(stage, plan)
    const seen: string[] = []
    await running(stage, first, { eachMessage: async ({ partition }) => void seen.push(`first ${partition}`) })
    first.pause([{ topic, partitions: [0] }])
    stage.note(first.paused())
    Object.assign(plan, { first: { [topic]: [1] }, second: { [topic]: [0] } })
    await secondComes({ eachMessage: async ({ partition }) => void seen.push(`second ${partition}`) })
    stage.note(first.paused())
    await produce(stage, [{ value: 'x', partition: 0 }])
    await stage.until(() => seen.length > 0)
    await stage.pass(200)
    Object.assign(plan, { first: { [topic]: [0, 1] }, second: {} })
    await secondGoes()
    stage.note(first.paused())
    await produce(stage, [
      { value: 'x', partition: 0 },
      { value: 'x', partition: 1 },
    ])
    await stage.pass(600)
    stage.note([...seen])
    first.resume([{ topic, partitions: [0] }])
    await stage.until(() => seen.length > 2)
    stage.note(seen)
    await first.disconnect()
  },

  'trap 6: a pause is lost when the consumer crashes and starts again': async (stage) => {
    await stage.create('orders', 2)
    await produce(stage, [{ value: 'x', partition: 0 }])
    const consumer = consumerOf(stage, { retry: { retries: 0, initialRetryTime: 30 } })
    const topic = stage.topic()
    const joins = joinsOf(consumer)
    consumer.on(consumer.events.GROUP_JOIN, () => stage.note(joins.count, consumer.paused()))
    const seen: number[] = []
    await running(stage, consumer, {
      autoCommit: false,
      eachMessage: async ({ partition }) => {
        seen.push(partition)
        consumer.pause([{ topic, partitions: [0] }])
        if (partition === 1 && seen.length === 2) throw new Error('crash')
      },
    })
    await stage.until(() => seen.length === 1)
    await stage.pass(300)
    stage.note([...seen], consumer.paused())
    await produce(stage, [{ value: 'x', partition: 1 }])
    await stage.until(() => joins.count === 2 && seen.length > 3)
    stage.note([...seen].sort())
    await consumer.disconnect()
    stage.note(consumer.paused(), await outcome(() => consumer.resume([{ topic, partitions: [0] }])))
  },

  "trap 7: a late resolve lands in the next generation, and is committed over the other member's": async (stage) => {
    await stage.create('orders', 2)
    const topic = stage.topic()
    await produce(
      stage,
      numbered(10).map((one) => ({ ...one, partition: 0 })),
    )
    const plan: Plan = { first: { [topic]: [0, 1] } }
    const { first, second, secondComes } = pair(stage, plan)
    let late: EachBatchPayload | undefined
    await running(stage, first, {
      eachBatchAutoResolve: false,
      eachBatch: async (payload) => {
        if (payload.batch.partition === 0) payload.pause()
        if (payload.batch.partition === 0) late = payload
        else payload.resolveOffset(payload.batch.lastOffset())
      },
    })
    await stage.until(() => late !== undefined)
    Object.assign(plan, { first: { [topic]: [1] }, second: { [topic]: [0] } })
    let handled = 0
    await secondComes({ eachMessage: async () => void handled++ })
    await stage.until(() => handled === 10)
    await stage.pass(300)
    stage.note(await committed(stage), late?.isStale(), late?.isRunning())
    late?.resolveOffset('0')
    stage.note(late?.uncommittedOffsets())
    await produce(stage, [{ value: 'x', partition: 1 }])
    await stage.pass(500)
    stage.note(await committed(stage))
    await second.disconnect()
    await first.disconnect()
  },

  'trap 7: a late resolve or commit of a topic that is gone altogether': async (stage) => {
    await stage.create('orders')
    await stage.create('other')
    const [topic, other] = [stage.topic(), stage.topic('other')]
    await produce(stage, numbered(3))
    const plan: Plan = { first: { [topic]: [0] } }
    const { first, second, secondComes } = pair(stage, plan, ['orders', 'other'])
    let late: EachBatchPayload | undefined
    await running(stage, first, {
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async (payload) => {
        payload.pause()
        late = payload
      },
    })
    await stage.until(() => late !== undefined)
    Object.assign(plan, { first: { [other]: [0] }, second: { [topic]: [0] } })
    await secondComes({ autoCommit: false, eachMessage: ignore })
    const thrown = (await outcome(() => late?.resolveOffset('0'))) as Error
    stage.note(thrown.name, late?.isStale())
    const partitions = [{ partition: 0, offset: '2' }]
    stage.note(await outcome(async () => late?.commitOffsetsIfNecessary({ topics: [{ topic, partitions }] })))
    stage.note(await committed(stage))
    await second.disconnect()
    await first.disconnect()
  },
}
