/** What is asked and told about offsets of transactions, as a real broker understands it. */
import { Kafka, logLevel } from 'kafkajs'
import { expect, onTestFinished, test } from 'vitest'
import { clusterOf, withGuardedConnections } from '../../src/adapters/kafkajs/framing'
import { endHanging, isHanging, lastEnd } from '../../src/adapters/kafkajs/hanging'
import { askOnce, type CoordinatorsLike } from '../../src/adapters/kafkajs/stable-offsets'
import { describeWithBroker, unique } from '../helpers/broker-shared'

describeWithBroker('a pending offset', (broker) => {
  test.each([
    ['committed', 5n],
    ['aborted', -1n],
  ] as const)(
    'is ended by a transaction that moves none: %s',
    async (end, offset) => {
      const kafka = withGuardedConnections(new Kafka({ brokers: [...broker.brokers], logLevel: logLevel.NOTHING }))
      const [topic, groupId, transactionalId] = [unique('pending'), unique('group'), unique('id')]
      const admin = kafka.admin()
      await admin.connect()
      await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 1 }] })
      await admin.disconnect()
      const producer = kafka.producer({ transactionalId })
      await producer.connect()
      onTestFinished(() => producer.disconnect())
      const cluster = clusterOf(producer) as CoordinatorsLike
      const place = { groupId, topic, partition: 0 }
      const stable = async (): Promise<boolean> => !(await isHanging(cluster, place))

      expect(await lastEnd(cluster, transactionalId)).toBeUndefined()
      const transaction = await producer.transaction()
      expect(await lastEnd(cluster, transactionalId)).toBeUndefined()
      expect(await stable()).toBe(true)
      await transaction.sendOffsets({
        consumerGroupId: groupId,
        topics: [{ topic, partitions: [{ partition: 0, offset: '5', metadata: 'm' }] }],
      })
      expect(await stable()).toBe(false)
      expect(await lastEnd(cluster, transactionalId)).toBe('aborted')

      await endHanging(transaction, groupId, end)
      await expect.poll(stable, { timeout: 20_000 }).toBe(true)
      const answer = await askOnce(cluster, groupId, [place])
      expect(answer?.offsets).toMatchObject([{ offset, metadata: end === 'committed' ? 'm' : '' }])
      expect(await lastEnd(cluster, transactionalId)).toBe(end)
      await (await producer.transaction()).abort()
      // Where the broker goes on with the same epoch nothing is taken over, and the end is still known.
      expect([end, undefined]).toContain(await lastEnd(cluster, transactionalId))
    },
    60_000,
  )
})
