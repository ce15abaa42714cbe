import type { Admin, Producer } from 'kafkajs'
import { byPartition, committed, consumerOf, FOR_EVER, outcome, produce, type Stage, type Story } from './stage'

type Message = Parameters<Producer['send']>[0]['messages'][number]

/** Answers come in an order that means nothing. */
async function sent(stage: Stage, sending: Promise<unknown>): Promise<unknown> {
  const answer = await stage.eventually(outcome(sending))
  const list = (answer as { value?: { topicName: string; partition: number }[] }).value
  if (Array.isArray(list)) list.sort((a, b) => a.topicName.localeCompare(b.topicName) || a.partition - b.partition)
  return answer
}

async function asked<T>(stage: Stage, asking: Promise<T>, view: (value: T) => unknown = (value) => value) {
  return stage.eventually(outcome(asking.then(view)))
}

async function withAdmin(stage: Stage, act: (admin: Admin) => Promise<void>): Promise<void> {
  const admin = stage.kafka.admin({ retry: { retries: 1, initialRetryTime: 30 } })
  await admin.connect()
  await act(admin)
  await admin.disconnect()
}

export const clientStories: Record<string, Story> = {
  'producer: what is answered, left out and refused': async (stage) => {
    await stage.create('orders', 2)
    await stage.create('small', 1, { 'max.message.bytes': '500' })
    await stage.create('compacted', 1, { 'cleanup.policy': 'compact' })
    const [orders, small] = [stage.topic(), stage.topic('small')]
    const producer = stage.kafka.producer({ retry: { retries: 1, initialRetryTime: 30 } })
    const send = (topic: string, ...messages: Message[]) => sent(stage, producer.send({ topic, messages }))
    stage.note('not connected', await send(orders, { value: 'x' }))
    await producer.connect()
    stage.note('no such partition', await send(orders, { value: 'x', partition: 7 }))
    stage.note('one of two', await send(orders, { value: 'x', partition: 7 }, { value: 'y', partition: 1 }))
    stage.note('no such topic', await send(stage.topic('missing'), { value: 'x' }))
    for (const size of [429, 430, 431, 432, 433]) stage.note(size, await send(small, { value: 'x'.repeat(size) }))
    const twenty = Array.from({ length: 20 }, () => ({ value: 'x'.repeat(40) }))
    stage.note('too large together', await send(small, ...twenty))
    const topicMessages = [
      { topic: small, messages: [{ value: 'x'.repeat(600) }] },
      { topic: orders, messages: [{ value: 'fine', partition: 0 }] },
    ]
    stage.note('too large beside one that is not', await sent(stage, producer.sendBatch({ topicMessages })))
    stage.note('compacted without a key', await send(stage.topic('compacted'), { value: 'x' }))
    for (const bad of [null, undefined, 5, ['a', null], [], {}, true]) {
      stage.note('header', typeof bad, await send(orders, { value: 'x', partition: 0, headers: { bad: bad as never } }))
    }
    stage.note('headers', await send(orders, { value: 'x', partition: 0, headers: null as never }))
    for (const key of [5, {}, true])
      stage.note('key', typeof key, await send(orders, { value: 'x', key: key as never }))
    stage.note(
      'no value',
      await send(orders, {} as never),
      await sent(stage, producer.send({ topic: '', messages: [] })),
    )
    stage.note('no messages', await sent(stage, producer.send({ topic: orders, messages: null as never })))
    stage.note('nothing', await send(orders), await sent(stage, producer.sendBatch({})))
    stage.note(
      'acks 0',
      await sent(stage, producer.send({ topic: orders, acks: 0, messages: [{ value: 'x', partition: 0 }] })),
    )
    const twice = [
      {
        topic: orders,
        messages: [
          { value: 'a', partition: 1 },
          { value: 'a', partition: 0 },
        ],
      },
      { topic: orders, messages: [{ value: 'b', partition: 1 }] },
    ]
    stage.note('twice in one call', await sent(stage, producer.sendBatch({ topicMessages: twice })))
    for (const key of ['a', 'b', 'c', 'ü', 'key-1', 'key-22', Buffer.from([0, 255, 3])]) {
      stage.note('by key', await send(orders, { key, value: 'x' }))
    }
    stage.note('transaction', await outcome(producer.transaction()), producer.isIdempotent())
    await producer.disconnect()
    stage.note('disconnected', await send(orders, { value: 'x' }))
    await withAdmin(stage, async (admin) => stage.note(byPartition(await admin.fetchTopicOffsets(orders))))
  },

  'admin: topics': async (stage) => {
    await stage.create('orders', 2, { 'retention.ms': '1000000' })
    await withAdmin(stage, async (admin) => {
      const topic = stage.topic()
      const missing = stage.topic('missing')
      stage.note('metadata of none', await asked(stage, admin.fetchTopicMetadata({ topics: [missing] })))
      const partitionsOf = ({ topics }: Awaited<ReturnType<Admin['fetchTopicMetadata']>>) =>
        topics.map(({ name, partitions }) => [name, [...partitions].sort((a, b) => a.partitionId - b.partitionId)])
      stage.note('metadata', await asked(stage, admin.fetchTopicMetadata({ topics: [topic] }), partitionsOf))
      const create = (...topics: object[]) =>
        asked(stage, admin.createTopics({ topics: topics as { topic: string }[] }))
      stage.note('create again', await create({ topic, numPartitions: 1 }))
      stage.note('bad name', await create({ topic: `${topic} with blanks!` }))
      stage.note('no partitions', await create({ topic: stage.topic('none'), numPartitions: 0 }))
      for (const [name, value] of [
        ['nothing', '1'],
        ['retention.ms', 'abc'],
        ['cleanup.policy', 'keep'],
        ['retention.ms', '-2'],
        ['preallocate', 'perhaps'],
      ]) {
        stage.note('bad setting', name, await create({ topic: stage.topic('bad'), configEntries: [{ name, value }] }))
      }
      stage.note('replicas', await create({ topic: stage.topic('copied'), replicationFactor: 3 }))
      stage.note('one of two', await create({ topic }, { topic: stage.topic('new') }))
      stage.note((await admin.listTopics()).filter((name) => name.startsWith(stage.topic(''))).sort())
      const grow = (name: string, count: number) =>
        asked(stage, admin.createPartitions({ topicPartitions: [{ topic: name, count }] }))
      stage.note('partitions', await grow(topic, 2), await grow(missing, 2), await grow(topic, 3))
      const deleted = await asked(stage, admin.deleteTopics({ topics: [missing] }))
      stage.note('delete', deleted, await asked(stage, admin.deleteTopics({ topics: [stage.topic('new')] })))
      stage.note('cluster', Object.keys(await admin.describeCluster()).sort())
    })
  },

  'admin: settings of topics': async (stage) => {
    await stage.create('orders', 1, { 'retention.ms': '1000000' })
    await withAdmin(stage, async (admin) => {
      type Described = Awaited<ReturnType<Admin['describeConfigs']>>
      const describe = (name: string, ...configNames: string[]) =>
        asked(
          stage,
          admin.describeConfigs({ resources: [{ type: 2, name, configNames }], includeSynonyms: false }),
          (all) => ({
            keys: Object.keys(all),
            resources: all.resources.map(({ errorMessage, configEntries, ...rest }: Described['resources'][0]) => ({
              ...rest,
              errorMessage: Boolean(errorMessage),
              configEntries: [...configEntries].sort((a, b) => a.configName.localeCompare(b.configName)),
            })),
          }),
        )
      stage.note(await describe(stage.topic(), 'retention.ms', 'cleanup.policy', 'max.message.bytes', 'segment.bytes'))
      stage.note(await describe(stage.topic('missing')))
      const entries = [{ name: 'cleanup.policy', value: 'compact' }]
      const resources = [{ type: 2, name: stage.topic(), configEntries: entries }]
      stage.note(await asked(stage, admin.alterConfigs({ validateOnly: false, resources })))
      stage.note(await describe(stage.topic(), 'retention.ms', 'cleanup.policy'))
      for (const bad of [[], [{ type: 99, name: 'x' }], [{ type: 2, name: '' }]]) {
        stage.note(await asked(stage, admin.describeConfigs({ resources: bad, includeSynonyms: false })))
      }
    })
  },

  'admin: offsets and records': async (stage) => {
    await stage.create('orders', 2, FOR_EVER)
    await produce(
      stage,
      [0, 0, 0, 1].map((partition) => ({ value: 'x', partition, timestamp: '1700000000000' })),
    )
    await withAdmin(stage, async (admin) => {
      const topic = stage.topic()
      const missing = stage.topic('missing')
      const groupId = stage.group()
      const cut = (partition: number, offset: string) =>
        asked(stage, admin.deleteTopicRecords({ topic, partitions: [{ partition, offset }] }))
      stage.note('cold', await cut(0, '0'))
      stage.note('positions of none', await asked(stage, admin.fetchTopicOffsets(missing)))
      stage.note('of a group', await asked(stage, admin.fetchOffsets({ groupId, topics: [missing] })))
      stage.note('of no group', await committed(stage), await asked(stage, admin.fetchOffsets({ groupId })))
      stage.note('positions', await asked(stage, admin.fetchTopicOffsets(topic), byPartition))
      for (const time of [5, 1_700_000_000_000, 1_700_000_000_001]) {
        stage.note('by time', await asked(stage, admin.fetchTopicOffsetsByTimestamp(topic, time), byPartition))
      }
      stage.note('cut', await cut(0, '2'), await cut(0, '1'), await cut(0, '5'), await cut(9, '0'), await cut(1, '-1'))
      stage.note('positions', await asked(stage, admin.fetchTopicOffsets(topic), byPartition))
      const set = (offset: string) =>
        asked(stage, admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset }] }))
      stage.note('set', await set('3'), await committed(stage), await set('-1'), await committed(stage))
      stage.note(
        'reset',
        await asked(stage, admin.resetOffsets({ groupId, topic, earliest: true })),
        await committed(stage),
      )
      const resolved = admin.fetchOffsets({ groupId, topics: [topic], resolveOffsets: true })
      stage.note(
        'resolved',
        await asked(stage, resolved, ([one]) => byPartition(one?.partitions ?? [])),
        await committed(stage),
      )
    })
  },

  'admin: groups': async (stage) => {
    await stage.create('orders')
    await withAdmin(stage, async (admin) => {
      const groupId = stage.group()
      stage.note(
        'none',
        await asked(stage, admin.describeGroups([groupId])),
        await asked(stage, admin.deleteGroups([groupId])),
      )
      const consumer = consumerOf(stage)
      await consumer.connect()
      await consumer.subscribe({ topics: [stage.topic()] })
      await consumer.run({ eachMessage: async () => undefined })
      const partitions = [{ partition: 0, offset: '3' }]
      stage.note('running', await asked(stage, admin.setOffsets({ groupId, topic: stage.topic(), partitions })))
      stage.note(await asked(stage, admin.deleteGroups([groupId])))
      // Their bytes name the topic, whose name has another length on each stage.
      const withoutBytes = ({ groups }: Awaited<ReturnType<Admin['describeGroups']>>) =>
        groups.map(({ members, ...group }) => ({
          ...group,
          members: members.map(({ memberAssignment, memberMetadata, ...member }) => ({
            ...member,
            bytes: [memberAssignment, memberMetadata].map((bytes) => Buffer.isBuffer(bytes)),
          })),
        }))
      stage.note(await asked(stage, admin.describeGroups([groupId]), withoutBytes))
      stage.note(Object.keys(await consumer.describeGroup()))
      await stage.pass(200)
      await consumer.disconnect()
      stage.note('empty', await asked(stage, admin.describeGroups([groupId]), withoutBytes))
      stage.note('delete', await asked(stage, admin.deleteGroups([groupId])))
      stage.note((await admin.listGroups()).groups.filter((group) => group.groupId === groupId))
    })
  },
}
