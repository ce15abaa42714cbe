import type { Admin, Consumer, EachBatchPayload, ICustomPartitioner } from 'kafkajs'
import { byPartition, noteEvents, outcome } from '../stage'
import { RETRY, type NodesStage, type NodesStory } from './stage'

/** Round and round from partition 0 on, where kafkajs's own begins anywhere. */
const counting: ICustomPartitioner = () => {
  let count = 0
  return ({ partitionMetadata, message }) => message.partition ?? count++ % partitionMetadata.length
}

const numbered = (count: number) => Array.from({ length: count }, (_, i) => ({ value: String(i) }))
const at = (partition: number, value = `to ${partition}`) => ({ partition, value })

/** A promise, and what fulfils it. */
function gate(): { promise: Promise<void>; open: () => void } {
  let open = (): void => undefined
  const promise = new Promise<void>((resolve) => (open = resolve))
  return { promise, open }
}

async function producing(stage: NodesStage) {
  const producer = stage.kafka.producer({ createPartitioner: counting, retry: RETRY })
  await producer.connect()
  const send = async (messages: { value: string; partition?: number }[], topic = stage.topic()) => {
    const answer = await stage.eventually(outcome(producer.send({ topic, messages })))
    const { value } = answer as { value?: { partition: number }[] }
    return Array.isArray(value) ? byPartition(value) : answer
  }
  return { producer, send }
}

async function withAdmin(stage: NodesStage, act: (admin: Admin) => Promise<void>): Promise<void> {
  const admin = stage.other().admin()
  await admin.connect()
  await act(admin)
  await admin.disconnect()
}

/** What stands on a topic, by partition: read by a consumer of its own. */
async function noteContent(stage: NodesStage, topic: string, count: number): Promise<void> {
  const consumer = stage.other().consumer({ groupId: stage.group('reader'), maxWaitTimeInMs: 100 })
  const seen: Record<number, string[]> = {}
  let total = 0
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    eachMessage: async ({ partition, message }) => {
      ;(seen[partition] ??= []).push(String(message.value))
      total++
    },
  })
  await stage.until(() => total >= count)
  await consumer.disconnect()
  const values = Object.values(seen).flat()
  stage.note('on the topic', seen, `${new Set(values).size} different of ${values.length}`)
}

const ends = async (admin: Admin, topic: string) =>
  (await admin.fetchTopicOffsets(topic)).map(({ partition, high }) => `${partition}: ${high}`).sort()

async function running(
  stage: NodesStage,
  eachBatch: (payload: EachBatchPayload) => Promise<void>,
  partitionsConsumedConcurrently: number,
): Promise<Consumer> {
  const consumer = stage.kafka.consumer({ groupId: stage.group(), maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topic: stage.topic(), fromBeginning: true })
  await consumer.run({ autoCommit: false, partitionsConsumedConcurrently, eachBatch })
  return consumer
}

/** Partition 1 is slow, partition 0 is not. */
async function slowBesideQuick(stage: NodesStage, concurrently: number): Promise<void> {
  await stage.create('orders', 2)
  const { producer, send } = await producing(stage)
  const slow = gate()
  const seen: string[] = []
  const eachBatch = async ({ batch }: EachBatchPayload): Promise<void> => {
    const values = batch.messages.map(({ value }) => String(value)).join()
    seen.push(`begins ${values}`)
    if (batch.partition === 1) await stage.gate(slow.promise)
    seen.push(`ends ${values}`)
  }
  const consumer = await running(stage, eachBatch, concurrently)
  await send([at(1, 'slow')])
  await stage.until(() => seen.includes('begins slow'))
  // Polls that stood when it began are over by then.
  await stage.pass(500)
  await send([at(0, 'first')])
  await stage.pass(500)
  await send([at(0, 'second')])
  await stage.pass(500)
  stage.note('while it is slow', [...seen])
  slow.open()
  await stage.until(() => seen.includes('ends second') || seen.includes('ends first,second'))
  stage.note('then', [...seen])
  await consumer.disconnect()
  await producer.disconnect()
}

export const nodesStories: Record<string, NodesStory> = {
  'leaders are told by the metadata, node by node': async (stage) => {
    await stage.create('orders', 5)
    await stage.create('single', 2, { replicas: 1 })
    await withAdmin(stage, async (admin) => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [stage.topic(), stage.topic('single')] })
      for (const { name, partitions } of [...topics].sort((a, b) => a.name.localeCompare(b.name))) {
        const view = [...partitions].sort((a, b) => a.partitionId - b.partitionId)
        stage.note(
          name,
          view.map(({ leader, replicas, isr, partitionErrorCode, offlineReplicas }) => ({
            leader,
            replicas,
            isr: [...isr].sort(),
            partitionErrorCode,
            offlineReplicas,
          })),
        )
      }
      const { brokers } = await admin.describeCluster()
      stage.note(brokers.map(({ nodeId, host, port }) => [nodeId, `${host}:${port}`]).sort())
      const { producer, send } = await producing(stage)
      stage.note(await send(numbered(10)))
      await producer.disconnect()
      stage.note(await ends(admin, stage.topic()))
      await admin.deleteTopicRecords({
        topic: stage.topic(),
        partitions: [0, 1, 4].map((partition) => ({ partition, offset: '1' })),
      })
      stage.note(byPartition(await admin.fetchTopicOffsets(stage.topic())))
    })
  },

  'a slow batch does not hold up the fetches of the other nodes': (stage) => slowBesideQuick(stage, 2),

  'with one worker it holds up what they bring': (stage) => slowBesideQuick(stage, 1),

  'rules 9 and 13: a rejoin inside the fetch of one node, while a batch of another is at work': async (stage) => {
    await stage.create('orders', 2)
    const { producer, send } = await producing(stage)
    const slow = gate()
    let payload: EachBatchPayload | undefined
    const consumer = await running(
      stage,
      async (one) => {
        if (payload !== undefined) return
        payload = one
        await stage.gate(slow.promise)
        stage.note('the batch ends')
      },
      3,
    )
    noteEvents(stage, consumer, '', ['START_BATCH_PROCESS', 'END_BATCH_PROCESS'])
    let joins = 0
    consumer.on(consumer.events.GROUP_JOIN, () => void joins++)
    await send([at(1)])
    await stage.until(() => payload !== undefined)
    stage.note('the batch is at work; another node gets partition 0')
    await stage.moveLeader(stage.topic(), 0, 3)
    await stage.until(() => joins > 0)
    stage.note('joined anew', { stale: payload?.isStale(), running: payload?.isRunning() })
    consumer.seek({ topic: stage.topic(), partition: 1, offset: '0' })
    stage.note('after a seek', { stale: payload?.isStale() })
    slow.open()
    await stage.pass(500)
    await consumer.disconnect()
    await producer.disconnect()
  },

  'rule 16: one node cut once, and keyless records are nowhere though the send resolves': async (stage) => {
    await stage.create('orders', 3)
    const { producer, send } = await producing(stage)
    await send([at(0, 'warm'), at(1, 'warm'), at(2, 'warm')])
    stage.cutNextPublish(2)
    stage.note(await send(numbered(20)))
    let total = 0
    await withAdmin(stage, async (admin) => {
      const found = await admin.fetchTopicOffsets(stage.topic())
      total = found.reduce((sum, { high }) => sum + Number(high), 0)
    })
    await noteContent(stage, stage.topic(), total)
    await producer.disconnect()
  },

  'a leader that has moved refuses once, and the send goes to the new one': async (stage) => {
    await stage.create('orders', 3)
    const { producer, send } = await producing(stage)
    await send([at(1, 'warm')])
    await stage.moveLeader(stage.topic(), 1, 3)
    stage.note(await send([at(1, 'after')]))
    await withAdmin(stage, async (admin) => stage.note(await ends(admin, stage.topic())))
    await producer.disconnect()
  },

  'a record whose leader moves to a node that has answered is nowhere, though the send resolves': async (stage) => {
    await stage.create('orders', 3)
    const { producer, send } = await producing(stage)
    await send([at(0, 'warm'), at(1, 'warm')])
    await stage.moveLeader(stage.topic(), 1, 1)
    stage.note(await send([at(0, 'kept'), at(1, 'lost')]))
    await withAdmin(stage, async (admin) => stage.note(await ends(admin, stage.topic())))
    await producer.disconnect()
  },

  'a node goes and comes: its partitions are led by another, a single replica by nobody': async (stage) => {
    await stage.create('orders', 3)
    await stage.create('single', 3, { replicas: 1 })
    const { producer, send } = await producing(stage)
    await send([at(0), at(1), at(2)])
    await send([at(0), at(1), at(2)], stage.topic('single'))
    const own = { groupId: stage.group(), topics: [stage.topic()] }
    await withAdmin(stage, async (admin) => {
      await admin.fetchTopicMetadata({ topics: own.topics })
      await admin.setOffsets({
        groupId: own.groupId,
        topic: stage.topic(),
        partitions: [{ partition: 0, offset: '1' }],
      })
    })
    await stage.down(3)
    stage.note('to what has another replica', await send([at(2, 'while it is away')]))
    await withAdmin(stage, async (admin) => {
      const { topics } = await admin.fetchTopicMetadata({ topics: own.topics })
      const [two] = (topics[0]?.partitions ?? []).filter(({ partitionId }) => partitionId === 2)
      stage.note({ moved: two?.leader !== 3, away: two?.offlineReplicas, inSync: [...(two?.isr ?? [])].sort() })
      stage.note('the whole cluster', await stage.eventually(outcome(admin.describeCluster())))
    })
    stage.note('to what has no leader', await send([at(2)], stage.topic('single')))
    // Rule 8: cold, kafkajs first loads the metadata of all topics there are.
    const cold = stage.other().admin()
    await cold.connect()
    stage.note('cold', await stage.eventually(outcome(cold.fetchOffsets(own))))
    await cold.fetchTopicMetadata({ topics: own.topics })
    const warm = await stage.eventually(cold.fetchOffsets(own))
    stage.note(
      'warm',
      warm.map(({ partitions }) => byPartition(partitions)),
    )
    await cold.disconnect()
    await stage.up(3)
    stage.note('to what has its leader again', await send([at(2, 'back')], stage.topic('single')))
    await producer.disconnect()
  },
}
