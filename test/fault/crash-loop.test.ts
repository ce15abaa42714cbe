/**
 * Real processes that die: of one record, as a supervisor starts them again and again; and of SIGKILL, twenty times, during
 * normal work. The first is found out and set aside, alone; of the second nothing is held against any record.
 */
import { Kafka, logLevel, type Admin } from 'kafkajs'
import { expect, it } from 'vitest'
import { describeWithBroker, unique } from '../helpers/broker-shared'
import { check, report } from './check'
import { deadLettersOf, placesOf, startLoad, untilCommitted, watchCommits } from './cluster'
import { createFleet, type Fleet, type Worker } from './fleet'
import type { Line } from './ledger'
import { encodeWish, type Wish } from './payload'
import { hopOf, readAll } from './reader'
import { until } from './until'

const PARTITIONS = 3
/** The least that the shared broker allows: each death costs as much before the next process gets the partitions. */
const SESSION_MS = 1_000
const KILLS = 20
const LONG = 480_000

interface Stage {
  readonly kafka: Kafka
  readonly admin: Admin
  readonly fleet: Fleet
  readonly topic: string
  readonly groups: ReadonlyMap<string, string>
}

async function onStage(brokers: readonly string[], play: (stage: Stage) => Promise<void>): Promise<void> {
  const topic = unique('orders')
  const groupId = unique('billing')
  const kafka = new Kafka({
    clientId: 'fault',
    brokers: [...brokers],
    logLevel: logLevel.NOTHING,
    retry: { retries: 10 },
  })
  const admin = kafka.admin()
  await admin.connect()
  const fleet = createFleet({ brokers, groupId, topic, schedule: [], sessionTimeoutMs: SESSION_MS })
  try {
    await admin.createTopics({
      topics: [{ topic, numPartitions: PARTITIONS, replicationFactor: 1 }],
      waitForLeaders: true,
    })
    await play({ kafka, admin, fleet, topic, groups: new Map([[groupId, topic]]) })
  } finally {
    await fleet.end()
    await admin.disconnect()
  }
}

/** Starts a process anew as soon as the one before has ended. */
function supervise(fleet: Fleet): { readonly deaths: number; readonly now: Worker | undefined; end(): Promise<void> } {
  let deaths = 0
  let now: Worker | undefined
  let ending = false
  const all = (async () => {
    while (!ending) {
      try {
        now = await fleet.start(`p${deaths + 1}`)
        await now.ended
      } catch {
        // A record may take it down before it has said that it has started.
      }
      now = undefined
      if (!ending) deaths++
    }
  })()
  return {
    get deaths() {
      return deaths
    },
    get now() {
      return now
    },
    async end() {
      ending = true
      await now?.stop()
      await all
    },
  }
}

const succeeded = (lines: readonly Line[]): Set<string> =>
  new Set(lines.flatMap((line) => (line.what === 'end' && line.outcome === 'ok' ? [line.place] : [])))

describeWithBroker('crash loops of real processes', ({ brokers }) => {
  // Side by side: each waits most of the time, for sessions to end.
  it.concurrent(
    'P1: a record that ends its process is a dead letter after three deaths, and no other is',
    { timeout: LONG },
    () =>
      onStage(brokers, async ({ kafka, admin, fleet, topic, groups }) => {
        const producer = kafka.producer({ allowAutoTopicCreation: false })
        await producer.connect()
        const wish = (id: string, more?: Partial<Wish>): Wish => ({ id, fails: 0, fatal: false, ms: 5, ...more })
        const produce = (partition: number, wishes: readonly Wish[]) =>
          producer.send({ topic, acks: -1, messages: wishes.map((one) => ({ partition, value: encodeWish(one) })) })
        const around = (partition: number, from: number): Wish[] =>
          Array.from({ length: 20 }, (_, n) => wish(`${partition}-${from + n}`))
        for (let partition = 0; partition < PARTITIONS; partition++) await produce(partition, around(partition, 0))
        await produce(1, [wish('deadly', { exits: true })])
        for (let partition = 0; partition < PARTITIONS; partition++) await produce(partition, around(partition, 20))
        const deadly = `${topic}/1@20`
        const dlq = `${topic}.dlq`

        const supervisor = supervise(fleet)
        const all = async (): Promise<boolean> => {
          expect(supervisor.deaths, 'deaths').toBeLessThanOrEqual(3)
          return succeeded(fleet.lines()).size === PARTITIONS * 40
        }
        await until('the records around it are handled', all, 120_000)
        await untilCommitted(admin, groups, 60_000)
        // The consumer goes on, in the process that has set it aside.
        for (let partition = 0; partition < PARTITIONS; partition++) await produce(partition, around(partition, 40))
        await untilCommitted(admin, groups, 60_000)
        await supervisor.end()
        await producer.disconnect()

        const lines = fleet.lines()
        const calls = lines.filter((line) => line.what === 'begin' && line.place === deadly)
        expect(supervisor.deaths).toBe(3)
        expect(calls.map(({ worker }) => worker)).toEqual(['p1', 'p2', 'p3'])
        expect((await readAll(kafka, admin, [dlq], unique('reader'))).map(hopOf)).toEqual([
          expect.objectContaining({ place: deadly, reason: 'crash-loop' }),
        ])
        const others = (await placesOf(admin, topic)).filter((place) => place !== deadly)
        expect(succeeded(lines)).toEqual(new Set(others))
        expect(lines.filter((line) => line.what === 'started').at(-1)?.worker).toBe('p4')
      }),
  )

  it.concurrent(
    `P1: ${KILLS} hard kills during normal work dead-letter nothing and lose nothing`,
    { timeout: LONG },
    () =>
      onStage(brokers, async ({ kafka, admin, fleet, topic, groups }) => {
        const supervisor = supervise(fleet)
        await until('the first process is up', () => supervisor.now !== undefined, 60_000)
        const watch = await watchCommits(kafka, groups)
        const load = await startLoad(kafka, topic, {
          batch: 6,
          wish: (n) => ({ id: `r${n}`, fails: 0, fatal: false, ms: 5 }),
        })
        const doneBy = (name: string): number => succeeded(fleet.linesOf(name)).size
        try {
          for (let kill = 1; kill <= KILLS; kill++) {
            const name = `p${kill}`
            // However slow the machine is, handlers take far less time than lies between two kills: no record that was at work at
            // the kill before is at work at this one too.
            await until(`${name} is at work`, () => supervisor.now?.name === name && doneBy(name) >= 20, 120_000)
            // A moment that nobody chose, by the producer's clock: 200 to 700 ms from now.
            const goal = load.sent + 30 + Math.floor(Math.random() * 75)
            await until('some more are produced', () => load.sent >= goal)
            await supervisor.now?.kill()
            await until(`${name} is gone`, () => supervisor.deaths >= kill)
          }
          await load.stop()
          await untilCommitted(admin, groups, 120_000)
          await supervisor.end()
          await watch.stop()

          const lines = fleet.lines()
          const findings = check({
            lines,
            produced: await placesOf(admin, topic),
            deadLetters: await deadLettersOf(kafka, admin, `${topic}.dlq`, unique('reader')),
            kills: fleet.kills,
            falls: watch.falls,
          })
          report('crash-loop', findings, lines, { looks: watch.looks })
          expect(findings.problems).toEqual([])
          expect(supervisor.deaths).toBe(KILLS)
          expect(findings.produced).toBeGreaterThanOrEqual(load.sent)
          expect([findings.handled, findings.deadLettered]).toEqual([findings.produced, 0])
        } finally {
          await Promise.allSettled([load.stop(), watch.stop()])
        }
      }),
  )
})
