/** The traps of kafkajs, 1 to 5: what a handler that throws, pauses or takes its time does to the loop it runs in. */
import {
  committed,
  consumerOf,
  joinsOf,
  numbered,
  produce,
  running,
  slowly,
  steered,
  type Plan,
  type Stage,
  type Story,
} from './staging'

const both = [0, 1].map((partition) => ({ value: 'x', partition }))

/** Calls until the consumer dies of a handler that fails, and how it died. */
async function callsUntilCrash(
  stage: Stage,
  config: Parameters<typeof consumerOf>[1],
  kafka: Stage['kafka'],
  handle: (offset: string, pause: () => () => void) => void,
): Promise<unknown[]> {
  const consumer = consumerOf(stage, config, kafka)
  const calls: string[] = []
  let died: unknown[] | undefined
  consumer.on(consumer.events.CRASH, ({ payload }) => (died ??= [[...calls], payload.restart, payload.error]))
  await running(stage, consumer, {
    eachMessage: async ({ message, pause }) => {
      calls.push(message.offset)
      handle(message.offset, pause)
    },
  })
  await stage.until(() => died !== undefined)
  await consumer.disconnect()
  return died ?? []
}

/** How long a resumed partition waits for its record, in ms. */
async function resumeTakes(stage: Stage, maxWaitTimeInMs: number, other: boolean): Promise<number> {
  const name = `${maxWaitTimeInMs}-${other}`
  const [topic, groupId] = [stage.topic(name), stage.group(name)]
  await stage.create(name, other ? 2 : 1)
  const consumer = consumerOf(stage, { groupId, maxWaitTimeInMs })
  let handledAt = 0
  await running(stage, consumer, { eachMessage: async () => void (handledAt = stage.now()) }, topic)
  const selection = [{ topic, partitions: [0] }]
  consumer.pause(selection)
  // Longer than a poll, so that the one that stands was sent without the partition.
  await stage.pass(maxWaitTimeInMs * 1.1)
  await produce(stage, [{ value: 'x', partition: 0 }], topic)
  await stage.pass(maxWaitTimeInMs / 5)
  const resumedAt = stage.now()
  consumer.resume(selection)
  await stage.until(() => handledAt > 0)
  await stage.eventually(consumer.disconnect())
  return handledAt - resumedAt
}

export const loopStories: Record<string, Story> = {
  'trap 1: eachMessage that pauses and returns has done its record': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(3))
    const consumer = consumerOf(stage)
    const seen: string[] = []
    let resume: (() => void) | undefined
    await running(stage, consumer, {
      eachMessage: async ({ message, pause }) => {
        seen.push(message.offset)
        resume ??= pause()
      },
    })
    await stage.until(() => seen.length > 0)
    await stage.pass(400)
    stage.note([...seen], consumer.paused(), await committed(stage))
    resume?.()
    await stage.until(() => seen.length > 2)
    await stage.pass(200)
    stage.note(seen, await committed(stage))
    await consumer.disconnect()
  },

  'trap 1: eachBatch that pauses at its first record and returns has done all ten': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(10))
    for (const eachBatchAutoResolve of [true, false]) {
      const groupId = stage.group(String(eachBatchAutoResolve))
      const consumer = consumerOf(stage, { groupId })
      const batches: string[][] = []
      let resume: (() => void) | undefined
      await running(stage, consumer, {
        eachBatchAutoResolve,
        eachBatch: async ({ batch, pause, resolveOffset }) => {
          batches.push(batch.messages.map(({ offset }) => offset))
          if (batches.length === 1) resolveOffset('0')
          if (batches.length === 1) resume = pause()
        },
      })
      await stage.until(() => batches.length > 0)
      await stage.pass(400)
      stage.note([...batches], await committed(stage, [stage.topic()], groupId))
      consumer.on(consumer.events.START_BATCH_PROCESS, () => void consumer.pause([{ topic: stage.topic() }]))
      resume?.()
      await stage.pass(400)
      stage.note(batches)
      await consumer.disconnect()
    }
  },

  'trap 2: twelve records that each fail once spend one budget': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(12))
    const failed = new Set<string>()
    const failOnce = (offset: string): void => {
      if (failed.has(offset)) return
      failed.add(offset)
      throw new Error('refused once')
    }
    stage.note(await callsUntilCrash(stage, { retry: { initialRetryTime: 20, retries: 5 } }, stage.kafka, failOnce))
    stage.note(await committed(stage))
  },

  "trap 2: the client's retries do not reach a consumer, its other settings do": async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(1))
    const kafka = stage.other({ retry: { retries: 1, initialRetryTime: 20, maxRetryTime: 50 } })
    stage.note(
      await callsUntilCrash(stage, {}, kafka, () => {
        throw new Error('refused')
      }),
    )
    const groupId = stage.group('with settings of its own')
    stage.note(
      await callsUntilCrash(stage, { groupId, retry: { maxRetryTime: 40 } }, kafka, () => {
        throw new Error('refused')
      }),
    )
  },

  'trap 2: pausing and throwing until a record is due ends in a crash': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(2))
    const retry = { initialRetryTime: 20, retries: 5 }
    const notDue = (_offset: string, pause: () => () => void): void => {
      const resume = pause()
      void stage.sleep(30).then(resume)
      throw new Error('not due')
    }
    stage.note(await callsUntilCrash(stage, { retry }, stage.kafka, notDue))
    stage.note(await committed(stage))
  },

  'trap 2: what looks like a bug kills at once': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(1))
    for (const Bug of [TypeError, RangeError, ReferenceError, SyntaxError, URIError, EvalError]) {
      const config = { groupId: stage.group(Bug.name), retry: { initialRetryTime: 20, retries: 1 } }
      stage.note(
        await callsUntilCrash(stage, config, stage.kafka, () => {
          throw new Bug('a bug')
        }),
      )
    }
  },

  'trap 2: a rejoin begins a new budget': async (stage) => {
    await stage.create('orders')
    await stage.create('other')
    await produce(stage, numbered(1))
    const plan: Plan = { first: { [stage.topic()]: [0] }, second: { [stage.topic('other')]: [0] } }
    const assigner = (name: string) => [steered(plan, [stage.topic(), stage.topic('other')], name)]
    const retry = { initialRetryTime: 20, maxRetryTime: 20, retries: 2 }
    const first = consumerOf(stage, { partitionAssigners: assigner('first'), heartbeatInterval: 50, retry })
    const second = consumerOf(stage, { partitionAssigners: assigner('second') }, stage.other())
    let crashes = 0
    let calls = 0
    first.on(first.events.CRASH, () => void crashes++)
    await running(stage, first, {
      eachMessage: async ({ heartbeat }) => {
        calls++
        // Two tries are gone; the third waits for the other member to come, and for the rebalance to be told.
        for (let i = 0; calls === 3 && i < 100; i++) {
          await stage.sleep(60)
          await heartbeat()
        }
        if (calls < 6) throw new Error(`refused at call ${calls}`)
      },
    })
    await stage.until(() => calls === 3)
    const joined = joinsOf(second)
    const coming = running(stage, second, { eachMessage: async () => undefined }, stage.topic('other'))
    await stage.until(() => joined.count > 0)
    await coming
    await stage.until(() => calls > 5 || crashes > 0)
    await stage.pass(300)
    stage.note(calls, crashes, await committed(stage))
    await second.disconnect()
    await first.disconnect()
  },

  'trap 3: a resume waits for the poll that stands': slowly(async (stage) => {
    for (const other of [false, true]) {
      stage.note('takes its time', (await resumeTakes(stage, 1500, other)) > 500)
    }
    stage.note('with short polls', (await resumeTakes(stage, 100, false)) < 400)
  }),

  'trap 3: so does a stop': slowly(async (stage) => {
    for (const maxWaitTimeInMs of [2000, 100]) {
      const name = String(maxWaitTimeInMs)
      await stage.create(name)
      const consumer = consumerOf(stage, { groupId: stage.group(name), maxWaitTimeInMs })
      await running(stage, consumer, { eachMessage: async () => undefined }, stage.topic(name))
      await stage.pass(300)
      const before = stage.now()
      await stage.eventually(consumer.disconnect())
      stage.note(maxWaitTimeInMs, stage.now() - before > 800)
    }
  }),

  'trap 4: a slow batch holds the other partitions, at any concurrency': async (stage) => {
    await stage.create('orders', 2)
    await produce(stage, [{ value: 'slow', partition: 0 }])
    const consumer = consumerOf(stage)
    const order: string[] = []
    await running(stage, consumer, {
      partitionsConsumedConcurrently: 2,
      eachMessage: async ({ message }) => {
        order.push(`${String(message.value)} begins`)
        if (order.length === 1) await stage.sleep(1200)
        order.push(`${String(message.value)} ends`)
      },
    })
    await stage.until(() => order.length > 0)
    await produce(stage, [{ value: 'quick', partition: 1 }])
    await stage.until(() => order.length > 3)
    stage.note(order)
    await consumer.disconnect()
  },

  'trap 5: a batch that is queued is handed over, though its partition is paused': async (stage) => {
    await stage.create('orders', 2)
    await produce(stage, both)
    const consumer = consumerOf(stage)
    const selection = [{ topic: stage.topic() }]
    let calls = 0
    await running(stage, consumer, {
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        const partitions = consumer.paused().flatMap((one) => one.partitions)
        stage.note(++calls, 'was paused', partitions.includes(batch.partition))
        consumer.pause(selection)
      },
    })
    await stage.until(() => calls > 1)
    await stage.pass(300)
    stage.note(calls)
    await consumer.disconnect()
  },
}
