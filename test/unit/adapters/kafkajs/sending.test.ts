/** How kafkajs's own producer, on brokers by script, tries again what goes to several of them. */
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { PRODUCER, sendAll, sendInTransaction, TRANSACTIONAL } from '../../../../src/adapters/kafkajs/sending'
import type { Outgoing } from '../../../../src/record'
import { hold } from '../../consume/given'

const load = createRequire(import.meta.url)
const sendMessages = load('kafkajs/src/producer/sendMessages')
const createRetry = load('kafkajs/src/retry')
const { KafkaJSConnectionError } = load('kafkajs/src/errors')

const record = (partition: number): Outgoing => ({
  topic: 't',
  partition,
  key: null,
  value: Buffer.from('v'),
  headers: [],
})

/** Nodes 1 and 2 lead partitions 0 and 1; node 2 fails once, and partition 0 is led by node 3 then. */
function setUp({ createPartitioner }: typeof PRODUCER, both = true) {
  const through = hold<void>()
  const log: string[] = []
  let failed = false
  const leaders = (): Record<number, number> => (failed ? { 0: 3, 1: 2 } : { 0: 1, 1: 2 })
  const sequences = new Map<number, number>()
  const brokers = new Map(
    [1, 2, 3].map((nodeId) => [
      nodeId,
      {
        nodeId,
        async produce({ topicData }: { topicData: { partitions: { partition: number; firstSequence: number }[] }[] }) {
          if (nodeId === 2 && !failed) {
            // The other one is through before it fails.
            if (both) await through.promise
            failed = true
            throw new KafkaJSConnectionError('cut')
          }
          const all = topicData.flatMap(({ partitions }) => partitions)
          for (const { partition, firstSequence } of all) log.push(`${partition} from ${firstSequence}`)
          return { topics: [{ topicName: 't', partitions: all.map(({ partition }) => ({ partition, errorCode: 0 })) }] }
        },
      },
    ]),
  )
  const cluster = {
    targetTopics: new Set(['t']),
    addMultipleTargetTopics: async () => undefined,
    refreshMetadataIfNecessary: async () => undefined,
    refreshMetadata: async () => undefined,
    isConnected: () => true,
    findTopicPartitionMetadata: () => [{ partitionId: 0 }, { partitionId: 1 }],
    findLeaderForPartitions(_: string, partitions: string[]) {
      const found: Record<number, number[]> = {}
      for (const one of partitions.map(Number)) (found[leaders()[one]!] ??= []).push(one)
      return found
    },
    findBroker: async ({ nodeId }: { nodeId: string }) => brokers.get(Number(nodeId)),
  }
  const eosManager = {
    acquireBrokerLock: async () => undefined,
    releaseBrokerLock: ({ nodeId }: { nodeId: number }) => void (nodeId === 1 && through.resolve()),
    isTransactional: () => true,
    addPartitionsToTransaction: async () => undefined,
    getTransactionalId: () => 'id',
    getProducerId: () => '1',
    getProducerEpoch: () => 0,
    getSequence: (_: string, partition: number) => sequences.get(Number(partition)) ?? 0,
    updateSequence: (_: string, partition: number, by: number) =>
      sequences.set(Number(partition), (sequences.get(Number(partition)) ?? 0) + by),
  }
  const nothing = (): void => undefined
  const sendBatch = sendMessages({
    ...{ cluster, eosManager },
    logger: { debug: nothing, error: nothing },
    partitioner: createPartitioner!(),
    retrier: createRetry({ initialRetryTime: 1, retries: 3 }),
  })
  return { log, to: { sendBatch } }
}

test('what one broker has taken is sent to its next leader as something new: kafkajs is as the mend expects', async () => {
  const { log, to } = setUp(PRODUCER)
  await sendAll(to, [record(0), record(1)], false)
  expect(log.sort()).toEqual(['0 from 0', '0 from 1', '1 from 0'])
})

test('in a transaction there is no second try for what goes to several partitions', async () => {
  const { log, to } = setUp(TRANSACTIONAL)
  await expect(sendInTransaction(to, [record(0), record(1)], false)).rejects.toThrow('not every broker took its part')
  expect(log).toEqual(['0 from 0'])
})

test('what goes to one partition is tried again, under the numbers of before', async () => {
  const { log, to } = setUp(TRANSACTIONAL, false)
  await sendInTransaction(to, [record(1), record(1)], false)
  expect(log).toEqual(['1 from 0'])
})
