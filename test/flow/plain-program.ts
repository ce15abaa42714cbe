/** A program as a user of kafkajs writes it. It knows neither retryline nor the fake, and runs on both brokers. */
import type { Consumer, EachMessagePayload, IHeaders, Kafka } from 'kafkajs'

/** What it saw, step by step. `name` makes names of its own of topics and groups, `pass` lets time go by. */
export async function plainProgram(
  kafka: Kafka,
  name: (word: string) => string,
  pass: (ms: number) => Promise<void>,
): Promise<unknown[]> {
  const seen: unknown[] = []
  const [orders, payments, shipping, billing] = [name('orders'), name('payments'), name('shipping'), name('billing')]
  const until = async (condition: () => boolean): Promise<void> => {
    for (let i = 0; !condition(); i++) {
      if (i > 400) throw new Error('it never came to that')
      await pass(50)
    }
  }
  const consumerOf = (groupId: string, retries = 5): Consumer =>
    kafka.consumer({ groupId, maxWaitTimeInMs: 100, retry: { retries, initialRetryTime: 50 } })

  // Topics, their settings, and what is written to them.
  const admin = kafka.admin()
  await admin.connect()
  const configEntries = [{ name: 'retention.ms', value: '86400000' }]
  const topics = [{ topic: orders, numPartitions: 3, configEntries }, { topic: payments }]
  seen.push(await admin.createTopics({ topics }), await admin.createTopics({ topics }))
  const resources = [{ type: 2, name: orders, configNames: ['retention.ms'] }]
  const described = await admin.describeConfigs({ includeSynonyms: false, resources })
  seen.push(described.resources.map(({ configEntries: entries }) => entries.map((entry) => entry.configValue)))
  const producer = kafka.producer()
  await producer.connect()
  const headers: IHeaders = { trace: 'a1', bytes: Buffer.from([0, 255]), many: ['x', Buffer.from('y')], empty: '' }
  const write = (from: number, to: number, topic: string): Promise<unknown> =>
    Promise.all(
      Array.from({ length: to - from }, async (_, i) => {
        const message = { key: `key ${(from + i) % 5}`, value: `order ${from + i}`, headers }
        return producer.send({ topic, messages: [message] })
      }),
    )
  const paid = Array.from({ length: 6 }, (_, i) => ({ value: i === 5 ? null : `paid ${i}`, key: 'same' }))
  const answers = await producer.sendBatch({ topicMessages: [{ topic: payments, messages: paid }] })
  seen.push(answers.map(({ topicName, ...answer }) => ({ ...answer, ours: topicName === payments })))
  await write(0, 20, orders)
  const ends = await admin.fetchTopicOffsets(orders)
  seen.push(ends.map(({ partition, low, high }) => `${partition}: ${low} to ${high}`).sort())

  // Two consumers share a group; one goes.
  const handled: string[] = []
  const shares: number[][] = [[], []]
  const eachMessage = async ({ message }: EachMessagePayload): Promise<void> => {
    if (handled.length === 0) seen.push(Object.entries(message.headers ?? {}), message.attributes, message.key !== null)
    handled.push(message.value?.toString() ?? 'nothing')
  }
  const members = [consumerOf(shipping), consumerOf(shipping)] as const
  for (const [i, member] of members.entries()) {
    member.on(member.events.GROUP_JOIN, ({ payload }) => {
      shares[i]?.push(payload.memberAssignment[orders]?.length ?? 0)
    })
    await member.connect()
    await member.subscribe({ topics: [orders], fromBeginning: true })
    const joining = member.run({ eachMessage })
    await until(() => (shares[i]?.length ?? 0) > 0)
    await joining
    if (i === 0) await until(() => handled.length === 20)
  }
  await until(() => shares[0]?.length === 2)
  await write(20, 40, orders)
  await until(() => handled.length === 40)
  seen.push([...shares.map((all) => all.length)], shares.map((all) => all.at(-1)).sort(), new Set(handled).size)
  const { groups } = await admin.describeGroups([shipping])
  seen.push(groups.map((group) => [group.state, group.protocolType, group.protocol, group.members.length]))
  await members[1].disconnect()
  await until(() => shares[0]?.length === 3)
  await pass(200)
  await members[0].disconnect()
  const stored = await admin.fetchOffsets({ groupId: shipping, topics: [orders] })
  seen.push(shares[0]?.at(-1), stored[0]?.partitions.map(({ partition, offset }) => `${partition}: ${offset}`).sort())

  // Batches, committed by hand with a note; a pause, a seek back, a crash and the restart.
  const steps: string[] = []
  const biller = consumerOf(billing, 1)
  const at = { topic: payments, partition: 0 }
  let crashes = 0
  biller.on(biller.events.CRASH, ({ payload: { error, restart } }) => {
    steps.push(`crash: ${error.name}, ${error.message}, ${restart}`)
    crashes++
  })
  await biller.connect()
  await biller.subscribe({ topics: [payments], fromBeginning: true })
  await biller.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, commitOffsetsIfNecessary, heartbeat, pause }) => {
      for (const { offset, value } of batch.messages) {
        steps.push(`${offset} of ${batch.highWatermark}: ${value?.toString() ?? 'nothing'}`)
        if (offset === '4' && crashes === 0) throw new Error('the bank is away')
        resolveOffset(offset)
        const next = String(Number(offset) + 1)
        const partitions = [{ partition: 0, offset: next, metadata: `by ${String(value)}` }]
        await commitOffsetsIfNecessary({ topics: [{ topic: payments, partitions }] })
        await heartbeat()
        if (offset !== '2' || steps.includes('paused')) continue
        steps.push('paused')
        return void pause()
      }
    },
  })
  await until(() => steps.includes('paused'))
  await pass(300)
  seen.push(
    [...steps],
    biller.paused().flatMap(({ partitions }) => partitions),
  )
  biller.seek({ ...at, offset: '1' })
  biller.resume([{ topic: payments }])
  await until(() => steps.at(-1) === '5 of 6: nothing')
  await pass(200)
  seen.push(steps.slice(4), await admin.fetchOffsets({ groupId: billing, topics: [payments] }))
  await biller.commitOffsets([{ ...at, offset: '3', metadata: 'again' }])
  await biller.disconnect()
  seen.push(await admin.fetchOffsets({ groupId: billing, topics: [payments] }))

  // The log is cut, the group set back, and all is cleared away.
  await admin.deleteTopicRecords({ topic: payments, partitions: [{ partition: 0, offset: '2' }] })
  seen.push(await admin.fetchTopicOffsets(payments))
  await admin.resetOffsets({ groupId: billing, topic: payments, earliest: true })
  const early = await admin.fetchOffsets({ groupId: billing, topics: [payments] })
  const deleted = await admin.deleteGroups([shipping, billing])
  seen.push(early, deleted.map(({ groupId, errorCode }) => `${groupId}: ${errorCode}`).sort())
  await admin.deleteTopics({ topics: [orders, payments] })
  seen.push((await admin.listTopics()).filter((topic) => topic === orders || topic === payments))
  const gone: unknown = await producer.send({ topic: payments, messages: [] }).catch((e: Error) => [e.name, e.message])
  seen.push(gone)
  await producer.disconnect()
  await admin.disconnect()
  return seen
}
