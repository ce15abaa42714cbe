/** Where the demo plays: on the in-memory broker, where time is moved by hand, or on a real one with short delays. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Kafka, logLevel } from 'kafkajs'
// In your own code: from 'retryline/testing'.
import { createFakeKafka } from '../../src/testing'

export interface Stage {
  /** A kafkajs client, real or fake. */
  readonly kafka: Pick<Kafka, 'consumer' | 'producer' | 'admin'>
  readonly title: string
  /** Whether time is moved by hand. */
  readonly virtual: boolean
  readonly topic: string
  readonly groupId: string
  readonly schedule: readonly string[]
  readonly handlerTimeout: string
  readonly retryAfterSeconds: number
  /** ms since the epoch, by the clock that counts here. */
  now(): number
  /** Lets time pass until all is done. */
  carry(isDone: () => boolean): Promise<void>
  /** Removes what was made for the demo. */
  tidy(made: { topics: readonly string[]; groups: readonly string[] }): Promise<void>
}

export function fakeStage(): Stage {
  // The calls that the server never answers are stuck, in real time; after so many real ms virtual time goes on.
  const kafka = createFakeKafka({ startAt: Date.UTC(2030, 0, 1), stallAfter: 600 })
  const schedule = ['1m', '10m', '1h']
  return {
    kafka,
    title: 'an in-memory broker and a virtual clock',
    virtual: true,
    topic: 'webhooks',
    groupId: 'relay',
    schedule,
    handlerTimeout: '10s',
    retryAfterSeconds: 300,
    now: () => kafka.clock.now(),
    carry: () => kafka.clock.advance('2h'),
    tidy: async () => undefined,
  }
}

const PATIENCE = 60_000

export function realStage(brokers: readonly string[]): Stage {
  const name = `retryline-demo-${randomBytes(4).toString('hex')}`
  const kafka = new Kafka({ clientId: name, brokers: [...brokers], logLevel: logLevel.NOTHING, retry: { retries: 3 } })
  // Ctrl-C once: clean up and end. Twice: end.
  let interrupted = false
  process.once('SIGINT', () => (interrupted = true))
  return {
    kafka,
    title: `the broker at ${brokers.join(', ')}, in real time`,
    virtual: false,
    topic: name,
    groupId: name,
    schedule: ['1s', '2s', '4s'],
    handlerTimeout: '2s',
    retryAfterSeconds: 2,
    now: () => Date.now(),
    async carry(isDone) {
      const until = Date.now() + PATIENCE
      while (!isDone()) {
        await sleep(50)
        if (interrupted) throw new Error('interrupted')
        if (Date.now() > until) throw new Error(`not all records were settled after ${PATIENCE / 1000} s`)
      }
    },
    async tidy({ topics, groups }) {
      const admin = kafka.admin()
      await admin.connect()
      try {
        const there = await admin.listTopics()
        await admin.deleteTopics({ topics: topics.filter((topic) => there.includes(topic)) })
        await admin.deleteGroups([...groups]).catch(() => undefined)
      } finally {
        await admin.disconnect()
      }
    },
  }
}
