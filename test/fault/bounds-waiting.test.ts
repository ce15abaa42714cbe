/**
 * P11: a long backlog that is not due. A million records wait on a retry topic; what is in memory is bounded, what becomes due
 * is handled, and a stop does not wait for the rest.
 */
import { Kafka, logLevel } from 'kafkajs'
import { expect, it } from 'vitest'
import { describeWithBroker, unique } from '../helpers/broker-shared'
import { base, MIB, measured, overIdle, show } from './bounds-driver'
import { produceMany, retryOf } from './bounds-load'

const FULL = process.env.BOUNDS === 'full'
const TOTAL = FULL ? 1_000_000 : 12_000
const PARTITIONS = 4
const DUE = 400
const LIMIT = (FULL ? 16 : 4) * MIB

describeWithBroker('P11 records that are not due', ({ brokers }) => {
  it(`P11 ${TOTAL} wait on a retry topic`, { timeout: FULL ? 1_800_000 : 300_000 }, async () => {
    const topic = unique('waiting')
    const groupId = unique('billing')
    const kafka = new Kafka({ clientId: 'bounds', brokers, logLevel: logLevel.NOTHING })
    const admin = kafka.admin()
    await admin.connect()
    const idleTopic = `${topic}-idle`
    const retry = `${topic}.retry.1h`
    await admin.createTopics({
      topics: [topic, retry, idleTopic].map((name) => ({ topic: name, numPartitions: PARTITIONS })),
      waitForLeaders: true,
    })
    const worker = await measured({
      brokers,
      idleTopic,
      groupId,
      topics: [topic],
      consumer: { schedule: ['1h'], maxBufferedBytes: LIMIT },
      handlerMs: 0,
      failures: 0,
      digests: false,
    })
    try {
      const producedMs = await load()
      const startMs = await worker.go()
      const full = await worker.reportWhen('every lane is full', ({ states }) => states.full === PARTITIONS)
      const done = await worker.reportWhen('what is due is handled', ({ ok }) => ok === DUE, 180_000)
      const stopMs = await worker.stop()
      show('waiting', done, {
        total: TOTAL,
        producedMs,
        startMs,
        stopMs,
        held: full.held,
        mostLateMs: done.mostLateMs,
        pauses: done.pauses,
      })
      expect(done.problems).toEqual([])
      expect(done.early).toBe(0)
      // Never more than a fetch beyond what is configured, which is meant to be no more again; and when that is dealt with, not that.
      expect(overIdle(done)).toBeLessThanOrEqual(2 * LIMIT + base(2 * PARTITIONS))
      expect(done.now.live - done.idle.live).toBeLessThanOrEqual(LIMIT + base(2 * PARTITIONS))
    } finally {
      await worker.end()
      await admin.deleteTopics({ topics: [topic, retry, idleTopic] })
      await admin.disconnect()
    }

    async function load(): Promise<number> {
      const startedAt = Date.now()
      const soon = startedAt + 5_000 + TOTAL / 10
      const late = soon + 3_600_000
      await produceMany(kafka, { topic: retry, partitions: PARTITIONS, total: TOTAL }, (n) =>
        retryOf({ topic, groupId, n, partition: n % PARTITIONS }, n < DUE ? soon + n : late),
      )
      return Date.now() - startedAt
    }
  })
})
