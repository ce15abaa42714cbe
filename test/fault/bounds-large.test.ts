/** P11, P3: records of 10 MB, each failing once and then again: through the retry topic to the dead letter topic, byte for byte. */
import { createHash, randomBytes } from 'node:crypto'
import { Kafka, logLevel } from 'kafkajs'
import { expect, it } from 'vitest'
import { describeWithBroker, unique } from '../helpers/broker-shared'
import { base, MIB, measured, overIdle, show } from './bounds-driver'
import { until } from './until'

const FULL = process.env.BOUNDS === 'full'
const RECORDS = FULL ? 20 : 2
const BYTES = 10_000_000
const LIMIT = 64 * MIB
const CONFIG = [{ name: 'max.message.bytes', value: String(12 * MIB) }]

describeWithBroker('P11 large records', ({ brokers }) => {
  it(
    `P3 P11 ${RECORDS} records of 10 MB, by way of the retry topic to the dead letter topic`,
    { timeout: 600_000 },
    async () => {
      const topic = unique('large')
      const names = [topic, `${topic}.retry.1s`, `${topic}.dlq`]
      const idleTopic = `${topic}-idle`
      const groupId = unique('billing')
      const kafka = new Kafka({ clientId: 'bounds', brokers, logLevel: logLevel.NOTHING })
      const admin = kafka.admin()
      await admin.connect()
      await admin.createTopics({
        topics: [
          ...names.map((name) => ({ topic: name, numPartitions: 2, configEntries: CONFIG })),
          { topic: idleTopic },
        ],
        waitForLeaders: true,
      })
      const sent = new Map<string, string>()
      const producer = kafka.producer({ allowAutoTopicCreation: false })
      await producer.connect()
      for (let n = 0; n < RECORDS; n++) {
        const value = randomBytes(BYTES)
        sent.set(`large-${n}`, digest(value))
        // Small ones of the other partition stand beside them: what is too large for a fetch must not be passed by for ever.
        await producer.send({ topic, messages: [{ key: `large-${n}`, partition: 1, value }] })
        const small = Array.from({ length: 50 }, () => ({ key: 'small', partition: 0, value: 'small' }))
        await producer.send({ topic, messages: small })
      }
      await producer.disconnect()
      const worker = await measured({
        ...{ brokers, idleTopic, groupId, topics: [topic], handlerMs: 0, digests: true },
        consumer: { schedule: ['1s'], maxBufferedBytes: LIMIT },
        failures: 2,
      })
      const total = RECORDS * 51
      try {
        const startMs = await worker.go()
        const done = await worker.reportWhen('each was tried twice', ({ calls }) => calls === 2 * total, 300_000)
        const found = new Map<string, string>()
        const reader = kafka.consumer({
          groupId: unique('reader'),
          maxBytesPerPartition: 12 * MIB,
          maxWaitTimeInMs: 200,
        })
        await reader.connect()
        try {
          await reader.subscribe({ topic: `${topic}.dlq`, fromBeginning: true })
          await reader.run({
            eachMessage: async ({ message: { key, value } }) => {
              if (String(key) !== 'small') found.set(String(key), digest(value ?? Buffer.alloc(0)))
            },
          })
          await until('all are on the dead letter topic', () => found.size === RECORDS, 120_000)
        } finally {
          await reader.disconnect()
        }
        const stopMs = await worker.stop()
        show('large', done, { records: RECORDS, startMs, stopMs, calls: done.calls })
        expect(Object.fromEntries(found)).toEqual(Object.fromEntries(sent))
        for (const [key, value] of sent) expect(done.digests[key]).toEqual([value, value])
        expect(done.problems).toEqual([])
        // Both groups may hold their bytes; what is on its way in or out is one record each time, some copies of it in kafkajs.
        expect(overIdle(done)).toBeLessThanOrEqual(2 * LIMIT + base(4) + 8 * BYTES)
      } finally {
        await worker.end()
        await admin.deleteTopics({ topics: [...names, idleTopic] })
        await admin.disconnect()
      }
    },
  )
})

function digest(value: Buffer): string {
  return createHash('sha256').update(value).digest('hex')
}
