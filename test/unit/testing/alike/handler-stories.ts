import {
  byPartition,
  committed,
  consumerOf,
  FOR_EVER,
  noteEvents,
  numbered,
  outcome,
  produce,
  transact,
  type Stage,
  type Story,
} from './stage'

async function crashOf(stage: Stage, name: string, thrown: unknown): Promise<void> {
  await stage.create(name)
  await produce(stage, [{ value: '0' }], stage.topic(name))
  const consumer = stage.kafka.consumer({
    groupId: stage.group(name),
    maxWaitTimeInMs: 100,
    retry: { retries: 0, initialRetryTime: 30 },
  })
  let crashes = 0
  consumer.on(consumer.events.CRASH, ({ payload }) => {
    if (crashes++ === 0) stage.note(payload.restart, payload.error, String(payload.error.cause))
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [stage.topic(name)], fromBeginning: true })
  await consumer.run({
    eachMessage: async () => {
      throw thrown
    },
  })
  await stage.until(() => crashes > 0)
  await consumer.disconnect()
}

export const handlerStories: Record<string, Story> = {
  'eachMessage: messages, headers, events and commits': async (stage) => {
    await stage.create('orders', 1, FOR_EVER)
    stage.note(
      await produce(stage, [
        { key: 'a', value: '1', headers: { x: 'y', z: Buffer.from('z') } },
        { value: null, key: 'k', timestamp: '1700000000000' },
        { value: '3', headers: { a: ['1', '2'], constructor: 'c', toString: 't', '': 'empty name' } },
      ]),
    )
    const consumer = consumerOf(stage)
    noteEvents(stage, consumer)
    let seen = 0
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ topic, partition, message }) => {
        seen++
        const { timestamp, ...rest } = message
        stage.note(topic, partition, { ...rest, batchContext: null }, timestamp.length, Object.keys(message))
      },
    })
    await stage.until(() => seen === 3)
    await stage.pass(300)
    await consumer.disconnect()
    stage.note(await committed(stage))
  },

  'eachBatch: what a batch tells, resolving, seeking and committing by hand': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(5))
    const consumer = consumerOf(stage)
    let calls = 0
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async (payload) => {
        const { batch, resolveOffset, commitOffsetsIfNecessary, uncommittedOffsets, isStale } = payload
        calls++
        stage.note(
          Object.keys(payload),
          [batch.topic, batch.partition, (batch as any).fetchedOffset, batch.firstOffset(), batch.lastOffset()],
          [batch.highWatermark, batch.offsetLag(), batch.offsetLagLow(), batch.isEmpty()],
          batch.messages.map(({ offset }) => offset),
          [payload.isRunning(), isStale(), uncommittedOffsets()],
        )
        if (calls === 1) {
          resolveOffset('1')
          stage.note(uncommittedOffsets())
          await commitOffsetsIfNecessary()
        } else if (calls === 2) {
          await commitOffsetsIfNecessary(uncommittedOffsets())
          resolveOffset(batch.messages[1]?.offset ?? '')
          consumer.seek({ topic: stage.topic(), partition: 0, offset: '4' })
          stage.note(isStale())
        } else if (calls === 3) {
          resolveOffset('4')
          const partitions = [{ partition: 0, offset: '5', metadata: 'mark' }]
          await commitOffsetsIfNecessary({ topics: [{ topic: stage.topic(), partitions }] })
          stage.note(uncommittedOffsets())
        }
      },
    })
    await stage.until(() => calls === 3)
    await stage.pass(300)
    await consumer.disconnect()
    stage.note(calls, await committed(stage))
  },

  'a handler that throws spends the retries, then crashes for good if restartOnFailure says so': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(3))
    const restartOnFailure = async (e: Error): Promise<boolean> => {
      stage.note('restartOnFailure', e)
      return false
    }
    const consumer = consumerOf(stage, { retry: { retries: 2, initialRetryTime: 50, restartOnFailure } })
    noteEvents(stage, consumer)
    let crashed = false
    consumer.on(consumer.events.CRASH, () => void (crashed = true))
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ message }) => {
        stage.note('call', message.offset)
        if (message.offset === '1') throw new Error('refused')
      },
    })
    await stage.until(() => crashed)
    await stage.pass(500)
    stage.note(await committed(stage))
    await consumer.disconnect()
  },

  'a crash for want of retries restarts the consumer': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(1))
    const consumer = consumerOf(stage, { retry: { retries: 1, initialRetryTime: 50 } })
    noteEvents(stage, consumer)
    let calls = 0
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await consumer.run({
      eachMessage: async () => {
        stage.note('call', ++calls)
        if (calls < 4) throw new Error('refused')
      },
    })
    await stage.until(() => calls === 4)
    await stage.pass(500)
    stage.note(await committed(stage))
    await consumer.disconnect()
  },

  'what is thrown decides whether a crash restarts': async (stage) => {
    const retriable = Object.assign(new Error('at the bottom'), { retriable: true })
    await crashOf(stage, 'type-error', new TypeError('a bug'))
    await crashOf(stage, 'undefined', undefined)
    await crashOf(stage, 'null', null)
    await crashOf(stage, 'text', 'text')
    await crashOf(stage, 'not-retriable', Object.assign(new Error('no'), { retriable: false }))
    await crashOf(stage, 'by-cause', Object.assign(new Error('no'), { retriable: false, cause: retriable }))
  },

  'several partitions at once; an error waits for the others': async (stage) => {
    await stage.create('orders', 3)
    await produce(
      stage,
      [0, 1, 2].flatMap((partition) => numbered(2).map(({ value }) => ({ value, partition }))),
    )
    const consumer = consumerOf(stage, { retry: { retries: 1, initialRetryTime: 50 } })
    const calls: string[] = []
    let running = 0
    let most = 0
    let crashes = 0
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      if (crashes++ === 0) stage.note(payload.error, payload.restart)
    })
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await consumer.run({
      partitionsConsumedConcurrently: 2,
      eachMessage: async ({ partition, message }) => {
        most = Math.max(most, ++running)
        if (crashes === 0) calls.push(`${partition}/${message.offset}`)
        await stage.sleep(50)
        running--
        if (partition === 1) throw new Error('refused')
      },
    })
    await stage.until(() => crashes === 1)
    await consumer.disconnect()
    stage.note(most, calls.sort(), await committed(stage))
  },

  'auto-commit by threshold': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(5))
    const consumer = consumerOf(stage)
    noteEvents(stage, consumer)
    let calls = 0
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await consumer.run({ autoCommitThreshold: 2, eachMessage: async () => void calls++ })
    await stage.until(() => calls === 5)
    await stage.pass(200)
    await consumer.disconnect()
  },

  'a seek commits with auto-commit, and only moves without': async (stage) => {
    await stage.create('orders')
    await produce(stage, numbered(5))
    for (const autoCommit of [true, false]) {
      const consumer = consumerOf(stage, { groupId: stage.group(String(autoCommit)) })
      noteEvents(stage, consumer, '', ['CONNECT'])
      const seen: string[] = []
      await consumer.connect()
      await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
      const running = consumer.run({
        autoCommit,
        eachMessage: async ({ message }) => {
          seen.push(message.offset)
          if (seen.length === 2) consumer.seek({ topic: stage.topic(), partition: 0, offset: '0' })
        },
      })
      consumer.seek({ topic: stage.topic(), partition: 0, offset: '3' })
      await running
      await stage.until(() => seen.length === 7)
      await stage.pass(200)
      stage.note(seen)
      await consumer.disconnect()
    }
  },

  'pausing a topic, a partition, and both': async (stage) => {
    await stage.create('orders', 2)
    const at = (partition: number): { value: string; partition: number } => ({ value: 'x', partition })
    await produce(stage, [at(0), at(1), at(0)])
    const consumer = consumerOf(stage)
    const seen: string[] = []
    const topic = stage.topic()
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ partition, message }) => {
        seen.push(`${partition}/${message.offset}`)
        if (seen.length > 1) return
        consumer.pause([{ topic }])
        stage.note(consumer.paused())
      },
    })
    await stage.pass(600)
    stage.note(seen.length, consumer.paused())
    consumer.resume([{ topic, partitions: [0] }])
    stage.note(consumer.paused())
    await stage.pass(600)
    consumer.pause([{ topic, partitions: [0] }])
    stage.note(consumer.paused())
    consumer.resume([{ topic }])
    stage.note(consumer.paused())
    await stage.pass(600)
    stage.note(seen.sort())
    await consumer.disconnect()
  },

  'two topics, some subscribed by pattern': async (stage) => {
    await stage.create('a', 2)
    await stage.create('b', 3)
    await stage.create('c')
    await produce(stage, [{ value: '1', partition: 0 }], stage.topic('a'))
    await produce(stage, [{ value: '2', partition: 2 }], stage.topic('b'))
    const consumer = consumerOf(stage)
    const seen: string[] = []
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => stage.note(payload.memberAssignment))
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic('a')], fromBeginning: true })
    await consumer.subscribe({ topics: [new RegExp(`^${stage.topic('b')}$`)], fromBeginning: true })
    await consumer.run({ eachMessage: async ({ topic, partition }) => void seen.push(`${topic}/${partition}`) })
    await stage.until(() => seen.length === 2)
    await stage.pass(300)
    await consumer.disconnect()
    stage.note(seen.sort(), await committed(stage, [stage.topic('a'), stage.topic('b')]))
    const admin = stage.kafka.admin()
    await admin.connect()
    const all = await admin.fetchOffsets({ groupId: stage.group() })
    stage.note(all.map(({ topic, partitions }) => [topic, byPartition(partitions)]).sort())
    await admin.disconnect()
  },

  'a group without commits starts at the end unless told': async (stage) => {
    await stage.create('orders')
    await produce(stage, [{ value: 'old' }])
    const consumer = consumerOf(stage)
    const seen: string[] = []
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()] })
    await consumer.run({ eachMessage: async ({ message }) => void seen.push(message.offset) })
    await stage.pass(500)
    await produce(stage, [{ value: 'new' }])
    await stage.until(() => seen.length === 1)
    await stage.pass(200)
    await consumer.disconnect()
    stage.note(seen, await committed(stage))
  },

  'a fetch brings whole batches': async (stage) => {
    await stage.create('orders', 2)
    const large = (partition: number): { value: string; partition: number } => ({ value: 'x'.repeat(100), partition })
    await produce(
      stage,
      Array.from({ length: 20 }, () => large(0)),
    )
    for (let i = 0; i < 6; i++) await produce(stage, [large(1)])
    const consumer = consumerOf(stage, { maxBytesPerPartition: 400 })
    const sizes: number[][] = [[], []]
    let seen = 0
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await consumer.run({
      eachBatch: async ({ batch }) => {
        seen += batch.messages.length
        sizes[batch.partition]?.push(batch.messages.length)
      },
    })
    await stage.until(() => seen === 26)
    await consumer.disconnect()
    stage.note(sizes)
  },

  'transaction markers take offsets and reach no handler': async (stage) => {
    await stage.create('orders')
    await transact(stage, stage.topic(), ['a', 'b'])
    const consumer = consumerOf(stage)
    noteEvents(stage, consumer)
    let calls = 0
    await consumer.connect()
    await consumer.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await stage.pass(300)
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async ({ batch, resolveOffset, uncommittedOffsets }) => {
        calls++
        stage.note(batch.messages.map(({ offset }) => offset))
        stage.note(batch.lastOffset(), batch.highWatermark, batch.offsetLag())
        for (const { offset } of batch.messages) resolveOffset(offset)
        stage.note(uncommittedOffsets())
      },
    })
    await stage.until(() => calls === 1)
    await stage.pass(300)
    await consumer.disconnect()

    const admin = stage.kafka.admin()
    await admin.connect()
    await admin.fetchTopicMetadata({ topics: [stage.topic()] })
    const groupId = stage.group('at-the-marker')
    await admin.setOffsets({ groupId, topic: stage.topic(), partitions: [{ partition: 0, offset: '2' }] })
    await admin.disconnect()
    const late = consumerOf(stage, { groupId })
    noteEvents(stage, late)
    let ended = 0
    late.on(late.events.END_BATCH_PROCESS, () => void ended++)
    await late.connect()
    await late.subscribe({ topics: [stage.topic()], fromBeginning: true })
    await late.run({ eachMessage: async () => stage.note('called') })
    await stage.until(() => ended === 1)
    await stage.pass(200)
    await late.disconnect()
    stage.note(await committed(stage, [stage.topic()], groupId))
  },

  'calls out of place are refused in the same words': async (stage) => {
    await stage.create('orders')
    const consumer = consumerOf(stage)
    const topic = stage.topic()
    const at = { topic: 't', partition: 0, offset: '0' }
    const commit = (one: unknown): Promise<unknown> => outcome(() => consumer.commitOffsets([one as typeof at]))
    stage.note(
      await outcome(() => consumer.pause([{ topic: 't' }])),
      await outcome(() => consumer.resume([{ topic: 't' }])),
      await outcome(() => consumer.seek(at)),
      await commit(at),
      consumer.paused(),
    )
    for (const bad of [{}, { topics: 'x' }, { topics: [1] }])
      stage.note(await outcome(consumer.subscribe(bad as never)))
    await consumer.connect()
    stage.note(await outcome(consumer.subscribe({ topics: [stage.topic('missing')] })))
    await consumer.subscribe({ topics: [topic] })
    await consumer.run({ eachMessage: async () => undefined })
    stage.note(await outcome(consumer.subscribe({ topics: [topic] })), await outcome(consumer.run({})))
    for (const bad of [{ topic: '' }, { partition: 'x' }, { offset: '-1' }, { offset: 'zz' }, { metadata: 5 }]) {
      stage.note(await commit({ ...at, ...bad }))
    }
    for (const bad of [{ offset: '-3' }, { topic: undefined }, { partition: 'x' }]) {
      stage.note(await outcome(() => consumer.seek({ ...at, ...bad } as never)))
    }
    for (const bad of [{}, { topic: 't', partitions: ['x'] }]) {
      stage.note(await outcome(() => consumer.pause([bad as never])))
      stage.note(await outcome(() => consumer.resume([bad as never])))
    }
    await stage.pass(200)
    await consumer.disconnect()
    stage.note(await outcome(() => consumer.resume([{ topic: 't' }])), await commit(at), await outcome(consumer.stop()))
    stage.note(await outcome(() => stage.kafka.consumer({} as never)))
    stage.note(await outcome(() => consumerOf(stage, { sessionTimeout: 10, heartbeatInterval: 10 })))
    stage.note(await outcome(() => consumer.on('nothing' as never, () => undefined)))
  },
}
