/** P11: a slow handler on a fast topic. What waits is the broker's to keep; few pauses, and no more memory however long it takes. */
import { Kafka, logLevel } from 'kafkajs'
import { expect, it } from 'vitest'
import { describeWithBroker, unique } from '../helpers/broker-shared'
import { base, MIB, measured, overIdle, show } from './bounds-driver'
import { produceMany, retryOf } from './bounds-load'

const FULL = process.env.BOUNDS === 'full'
const TOTAL = FULL ? 300_000 : 20_000
const HANDLED = FULL ? 12_000 : 700
const PARTITIONS = 6
const LIMIT = (FULL ? 8 : 4) * MIB

describeWithBroker('P11 a slow handler on a fast topic', ({ brokers }) => {
  it(`P11 ${TOTAL} records wait for a handler of 20 ms`, { timeout: 600_000 }, async () => {
    const topic = unique('slow')
    const idleTopic = `${topic}-idle`
    const groupId = unique('billing')
    const kafka = new Kafka({ clientId: 'bounds', brokers, logLevel: logLevel.NOTHING })
    const admin = kafka.admin()
    await admin.connect()
    await admin.createTopics({
      topics: [{ topic, numPartitions: PARTITIONS }, { topic: idleTopic }],
      waitForLeaders: true,
    })
    await produceMany(kafka, { topic, partitions: PARTITIONS, total: TOTAL }, (n) =>
      retryOf({ topic, groupId, n, partition: n % PARTITIONS }, 0),
    )
    const worker = await measured({
      ...{ brokers, idleTopic, groupId, topics: [topic], handlerMs: 20, failures: 0, digests: false },
      consumer: { schedule: [], maxBufferedBytes: LIMIT, ordering: 'unordered' },
    })
    try {
      const startMs = await worker.go()
      const half = await worker.reportWhen('half is handled', ({ ok }) => ok >= HANDLED / 2, 120_000)
      const done = await worker.reportWhen(`${HANDLED} are handled`, ({ ok }) => ok >= HANDLED, 300_000)
      const stopMs = await worker.stop()
      show('slow handler', done, {
        total: TOTAL,
        handled: done.ok,
        held: done.held,
        startMs,
        stopMs,
        pauses: done.pauses,
      })
      expect(done.problems).toEqual([])
      expect(overIdle(done)).toBeLessThanOrEqual(2 * LIMIT + base(PARTITIONS))
      // Flat, once every lane has its share: what was in memory then is what is in memory later.
      expect(done.now.live).toBeLessThanOrEqual(half.now.live + base(PARTITIONS))
      // A pause for every half of a lane's share, which is some hundreds of records, and one more for each lane.
      expect(done.pauses).toBeLessThanOrEqual(PARTITIONS + done.ok / 100)
    } finally {
      await worker.end()
      await admin.deleteTopics({ topics: [topic, idleTopic] })
      await admin.disconnect()
    }
  })
})
