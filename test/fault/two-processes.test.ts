/**
 * Worker processes on one topic: one joins, one leaves, one is killed under load. Nothing is lost, and a record is handled
 * twice only if it was in flight, or done and uncommitted, at the kill or the rebalance.
 */
import { Kafka, logLevel } from 'kafkajs'
import { expect, it } from 'vitest'
import { describeWithBroker, unique } from '../helpers/broker-shared'
import { check, report } from './check'
import { deadLettersOf, placesOf, startLoad, untilCommitted, watchCommits } from './cluster'
import { createFleet } from './fleet'
import { until } from './until'

const SCHEDULE = ['300ms', '600ms']
/** How many records each step of the plan takes, so that it goes on under load however slow the machine is. */
const PER_STEP = 250

describeWithBroker('two processes and more', ({ brokers }) => {
  it('P1 P2 P6 P7: one joins, one leaves, one is killed under load', { timeout: 170_000 }, async () => {
    const topic = unique('orders')
    const groupId = unique('billing')
    const groups = new Map([
      [groupId, topic],
      ...SCHEDULE.map((delay): [string, string] => [`${groupId}.retry.${delay}`, `${topic}.retry.${delay}`]),
    ])
    const kafka = new Kafka({ clientId: 'fault', brokers, logLevel: logLevel.NOTHING, retry: { retries: 10 } })
    const admin = kafka.admin()
    await admin.connect()
    await admin.createTopics({ topics: [{ topic, numPartitions: 6, replicationFactor: 1 }], waitForLeaders: true })
    const fleet = createFleet({ brokers, groupId, topic, schedule: SCHEDULE })
    const a = await fleet.start('A')
    const watch = await watchCommits(kafka, groups)
    const load = await startLoad(kafka, topic)
    const more = async (): Promise<void> => {
      const goal = load.sent + PER_STEP
      await until('more records', () => load.sent >= goal)
    }
    try {
      await more()
      const b = await fleet.start('B')
      await more()
      const leaveMs = await b.stop()
      await more()
      await fleet.start('C')
      await more()
      await a.kill()
      await more()
      const d = await fleet.start('D')
      await more()
      await load.stop()
      await untilCommitted(admin, groups, 60_000)
      const endMs = await d.stop()
      await watch.stop()

      const lines = fleet.lines()
      const findings = check({
        lines,
        produced: await placesOf(admin, topic),
        deadLetters: await deadLettersOf(kafka, admin, `${topic}.dlq`, unique('reader')),
        kills: fleet.kills,
      })
      report('two-processes', findings, lines, { looks: watch.looks, leaveMs, endMs })
      expect(findings.problems).toEqual([])
      expect(watch.falls).toEqual([])
      expect(findings.produced).toBeGreaterThanOrEqual(load.sent)
      expect(findings.handled + findings.deadLettered).toBe(findings.produced)
      expect(findings.deadLettered).toBeGreaterThan(0)
    } finally {
      await Promise.allSettled([load.stop(), watch.stop(), fleet.end()])
      await admin.disconnect()
    }
  })
})
