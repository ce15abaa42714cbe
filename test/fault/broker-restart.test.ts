/**
 * The broker goes away under load and comes back: the consumer says so meanwhile, comes back by itself, and loses nothing.
 * The consumer runs in this process, to look at its health; a ledger is kept all the same.
 */
import { Kafka, logLevel, type Admin } from 'kafkajs'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import {
  createResilientConsumer,
  memoryHooks,
  NonRetryableError,
  RetryableError,
  type ResilientConsumer,
} from '../../src'
import { startBroker, type Broker } from '../helpers/broker'
import { describeWithOwnBrokers, unique } from '../helpers/broker-shared'
import { check, report } from './check'
import { deadLettersOf, placesOf, startLoad, untilCommitted, type Load } from './cluster'
import { openLedger, readLedger, type Ledger } from './ledger'
import { decodeWish } from './payload'
import { until } from './until'

const nothing = (): void => undefined
const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing }

describeWithOwnBrokers('the broker goes away and comes back', () => {
  let broker: Broker
  let kafka: Kafka
  let admin: Admin
  let folder: string
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'retryline-fault-'))
    broker = await startBroker({ proxied: true })
    kafka = new Kafka({
      clientId: 'fault',
      brokers: broker.brokers,
      logLevel: logLevel.NOTHING,
      connectionTimeout: 1_000,
      retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 30 },
    })
  })
  afterAll(async () => {
    await broker.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  let topic: string
  let groupId: string
  let groups: Map<string, string>
  let path: string
  let ledger: Ledger
  let consumer: ResilientConsumer | undefined
  let load: Load | undefined
  beforeEach(async () => {
    topic = unique('orders')
    groupId = unique('billing')
    groups = new Map([
      [groupId, topic],
      [`${groupId}.retry.300ms`, `${topic}.retry.300ms`],
    ])
    path = join(folder, `${topic}.jsonl`)
    ledger = openLedger(path, 'A')
    admin = kafka.admin()
    await admin.connect()
    await admin.createTopics({ topics: [{ topic, numPartitions: 4, replicationFactor: 1 }], waitForLeaders: true })
  })
  afterEach(async () => {
    broker.proxy().restore()
    await Promise.allSettled([load?.stop(), consumer?.stop({ timeout: '2s' })])
    load = undefined
    consumer = undefined
    await admin.disconnect()
    ledger.close()
  })

  function make(beforeCall?: () => Promise<void>): {
    consumer: ResilientConsumer
    hooks: ReturnType<typeof memoryHooks>
  } {
    const hooks = memoryHooks({ keep: 100_000 })
    consumer = createResilientConsumer({
      kafka,
      groupId,
      topic,
      schedule: ['300ms'],
      topicSetup: 'create',
      sessionTimeout: '6s',
      heartbeatInterval: '500ms',
      logger: silent,
      hooks,
      async handler({ topic, partition, message }, ctx) {
        const { attempt, dueAt, source } = ctx
        const place = `${topic}/${partition}@${message.offset}`
        const call = { place, attempt, source: `${source.topic}/${source.partition}@${source.offset}` }
        ledger.write({ what: 'begin', ...call, ...(dueAt !== undefined && { dueAt }) })
        await beforeCall?.()
        const wish = decodeWish(message.value)
        const fails = attempt <= wish.fails
        ledger.write({ what: 'end', ...call, outcome: fails ? 'failed' : 'ok' })
        if (fails && wish.fatal) throw new NonRetryableError('never again')
        if (fails) throw new RetryableError('not now')
      },
    })
    consumer.on('rebalanced', ({ tier, removed }) => ledger.write({ what: 'rebalanced', tier, removed }))
    consumer.on('crashed', ({ tier }) => ledger.write({ what: 'crashed', tier }))
    for (const event of ['retried', 'deadLettered'] as const)
      consumer.on(event, (e) => ledger.write({ what: 'routed', source: `${e.topic}/${e.partition}@${e.offset}` }))
    return { consumer, hooks }
  }

  async function reconcile(test: string, outage: { from: number; to: number }, more: object): Promise<void> {
    await untilCommitted(admin, groups, 60_000)
    const lines = readLedger(path)
    const findings = check({
      lines,
      produced: await placesOf(admin, topic),
      deadLetters: await deadLettersOf(kafka, admin, `${topic}.dlq`, unique('reader')),
      kills: new Map(),
      outages: [outage],
      uncommittedMs: 2_000 + outage.to - outage.from,
    })
    report(test, findings, lines, more)
    expect(findings.problems).toEqual([])
    expect(findings.handled + findings.deadLettered).toBe(findings.produced)
    expect(findings.deadLettered).toBeGreaterThan(0)
  }

  it('R42 R56 P1 P12: the broker is stopped for 4 s and started under load', { timeout: 150_000 }, async () => {
    const { consumer, hooks } = make()
    await consumer.start()
    expect(consumer.health().status).toBe('ok')
    load = await startLoad(kafka, topic, { slowestMs: 0 })
    await until('some records were handled', () => hooks.counts.attempt > 200)

    const from = Date.now()
    await broker.stopNode()
    await until('the health is not ok', () => consumer.health().status === 'degraded', 60_000)
    const noticedMs = Date.now() - from
    expect(consumer.health().problems.join()).not.toBe('')
    await until('the outage was 4 s', () => Date.now() - from > 4_000)
    await broker.startNode()
    const startedAt = Date.now()
    await until('the health is ok again', () => consumer.health().status === 'ok', 90_000)
    const to = Date.now()
    const sent = load.sent
    await until('records flow again', () => load!.sent > sent + 200, 60_000)
    await load.stop()
    await reconcile(
      'broker-restart',
      { from, to },
      { noticedMs, backMs: to - startedAt, publishFailed: hooks.counts.publishFailed },
    )
  })

  it(
    'R56 P1: a copy whose publish meets the outage holds its offset, and goes through afterwards',
    { timeout: 150_000 },
    async () => {
      let cut: (() => void) | undefined
      const { consumer, hooks } = make(async () => cut?.())
      await consumer.start()
      const partition0 = (): object | undefined =>
        consumer.health().groups[0]?.partitions.find(({ partition }) => partition === 0)
      await until('where it begins is committed', () => (partition0() as { committed?: string }).committed === '0')
      const producer = kafka.producer()
      await producer.connect()
      const wish = { id: 'r0', fails: 1, fatal: false, ms: 0 }
      const dead = { ...wish, fatal: true }
      const proxy = broker.proxy()
      let from = 0
      // Between the call and its copy: the handler itself takes the network away.
      cut = () => {
        cut = undefined
        from = Date.now()
        proxy.cut()
      }
      const messages = [wish, dead].map((each) => ({ value: JSON.stringify(each), partition: 0 }))
      await producer.send({ topic, messages })
      await until('a publish has failed', () => hooks.counts.publishFailed > 0, 60_000)
      expect(partition0()).toMatchObject({ state: 'blocked', committed: '0' })
      expect(consumer.health().status).toBe('degraded')
      expect(hooks.counts.retried).toBe(0)

      proxy.restore()
      await until('the record was retried', () => hooks.counts.retried > 0, 60_000)
      await producer.disconnect()
      await reconcile('publish-in-outage', { from, to: Date.now() }, { publishFailed: hooks.counts.publishFailed })
      await until('the health is ok again', () => consumer.health().status === 'ok', 60_000)
    },
  )

  it('R42 P7: connections are cut again and again under load', { timeout: 150_000 }, async () => {
    const { consumer, hooks } = make()
    await consumer.start()
    load = await startLoad(kafka, topic, { slowestMs: 0 })
    const from = Date.now()
    for (let cuts = 0; cuts < 4; cuts++) {
      const handled = hooks.counts.attempt
      await until('records flow', () => hooks.counts.attempt > handled + 100, 60_000)
      broker.proxy().reset()
    }
    const to = Date.now()
    const sent = load.sent
    await until('records flow again', () => load!.sent > sent + 100, 60_000)
    await load.stop()
    await reconcile('cut-connections', { from, to }, { crashed: hooks.counts.crashed })
    await until('the health is ok', () => consumer.health().status === 'ok', 60_000)
  })

  it('R42: a broker that is silent, though connections stand, is told apart', { timeout: 120_000 }, async () => {
    const { consumer } = make()
    await consumer.start()
    broker.proxy().hold()
    await until('the health is not ok', () => consumer.health().status === 'degraded', 60_000)
    expect(consumer.health().problems.join()).toMatch(/no fetch was answered|crashed/)
    broker.proxy().restore()
    await until('the health is ok again', () => consumer.health().status === 'ok', 90_000)
  })
})
