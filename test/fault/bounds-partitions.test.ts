/** P11: a thousand partitions with a backlog, on one member and then on two: all handled, in the memory of one. */
import { Kafka, logLevel } from 'kafkajs'
import { expect, it } from 'vitest'
import { describeWithBroker, unique } from '../helpers/broker-shared'
import { base, MIB, measured, overIdle, show } from './bounds-driver'
import { produceMany, retryOf } from './bounds-load'
import { until } from './until'

const FULL = process.env.BOUNDS === 'full'
const PARTITIONS = FULL ? 1_000 : 40
const EACH = FULL ? 200 : 30
const LIMIT = (FULL ? 64 : 8) * MIB

describeWithBroker('P11 partitions without end', ({ brokers }) => {
  it(`P11 ${PARTITIONS} partitions, one member and a second`, { timeout: 900_000 }, async () => {
    const topic = unique('wide')
    const idleTopic = `${topic}-idle`
    const groupId = unique('billing')
    const kafka = new Kafka({ clientId: 'bounds', brokers, logLevel: logLevel.NOTHING, requestTimeout: 120_000 })
    const admin = kafka.admin()
    await admin.connect()
    await admin.createTopics({
      topics: [
        { topic, numPartitions: PARTITIONS },
        { topic: idleTopic, numPartitions: 1 },
        // Not left to the member: a broker that has just got a thousand partitions may take longer than it waits.
        ...[topic, idleTopic].map((name) => ({ topic: `${name}.dlq`, numPartitions: 1 })),
      ],
      waitForLeaders: true,
      timeout: 120_000,
    })
    const options = { brokers, idleTopic, groupId, topics: [topic], failures: 0, digests: false }
    const consumer = { schedule: [], maxBufferedBytes: LIMIT, ordering: 'unordered' as const }
    const first = await measured({ ...options, consumer, handlerMs: 1_000 })
    const second = await measured({ ...options, consumer, handlerMs: 0 })
    const total = PARTITIONS * EACH
    try {
      await produceMany(kafka, { topic, partitions: PARTITIONS, total }, (n) =>
        retryOf({ topic, groupId, n, partition: n % PARTITIONS }, 0),
      )
      // A handler that takes a second: all that one member may hold comes to stand in its memory.
      const startMs = await first.go()
      const alone = await first.reportWhen('it holds all it may', ({ partitions, states, held }) => {
        return partitions === PARTITIONS && (states.opening ?? 0) === 0 && held >= Math.min(total, PARTITIONS * 10)
      })
      const secondStartMs = await second.go()
      const shared = await first.reportWhen(
        "half of it is the second one's",
        ({ partitions }) => partitions === PARTITIONS / 2,
      )
      const firstStopMs = await first.stop()
      const all = await second.reportWhen("all is the second one's", ({ partitions }) => partitions === PARTITIONS)
      await until(
        'all is handled',
        async () => {
          const offsets = await admin.fetchOffsets({ groupId, topics: [topic] })
          const sum = offsets
            .flatMap(({ partitions }) => partitions)
            .reduce((all, { offset }) => all + Math.max(0, Number(offset)), 0)
          return sum === total
        },
        300_000,
      )
      const done = await second.report()
      const secondStopMs = await second.stop()
      show('partitions, slow', shared, {
        total,
        held: alone.held,
        startMs,
        firstStopMs,
        healthMs: alone.healthMs,
        pauses: shared.pauses,
      })
      show('partitions, fast', done, {
        calls: done.calls,
        startMs: secondStartMs,
        stopMs: secondStopMs,
        partitions: all.partitions,
        pauses: done.pauses,
      })
      // A commit that a rebalance has overtaken is refused, and made anew by whoever has the partition then.
      const isRefused = (problem: string): boolean => problem.includes('generation id is not valid')
      const problems = [...alone.problems, ...shared.problems, ...done.problems]
      expect(problems.filter((problem) => !isRefused(problem))).toEqual([])
      for (const report of [shared, done]) expect(overIdle(report)).toBeLessThanOrEqual(2 * LIMIT + base(PARTITIONS))
    } finally {
      await Promise.all([first.end(), second.end()])
      await admin.deleteTopics({ topics: [topic, idleTopic], timeout: 120_000 })
      await admin.disconnect()
    }
  })
})
