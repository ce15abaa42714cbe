/**
 * `delivery: 'exactly-once'` and processes that were stopped dead (SIGSTOP) and come back when their partitions are somebody
 * else's: one with handlers at work, one with a transaction open whose records stand on the topics already, one whose
 * transaction lacks nothing but its commit. Nothing of their late work counts.
 */
import { Kafka, logLevel } from 'kafkajs'
import { expect, it } from 'vitest'
import { describeWithBroker, unique } from '../helpers/broker-shared'
import { check, report } from './check'
import { untilCommitted, watchCommits } from './cluster'
import { callsOf } from './evidence'
import { createFleet } from './fleet'
import { encodeWish, mustDie, wishIn, type Wish } from './payload'
import { PACE, startProduction } from './producer'
import { hopOf, readAll, type Hop } from './reader'
import { until } from './until'

const SCHEDULE = ['300ms', '600ms']
const MAX_ATTEMPTS = SCHEDULE.length + 1
const PARTITIONS = 4
/** Long enough to be at work still when the process is stopped; shorter than the handlers' time-out. */
const SLOW_MS = 3_000

describeWithBroker('exactly once: zombies', ({ brokers }) => {
  it('each hop once: what processes do late, that were stopped for longer than their session, is never seen', async () => {
    const topic = unique('orders')
    const groupId = unique('billing')
    const out = `${topic}.out`
    const dlq = `${topic}.dlq`
    const tiers = SCHEDULE.map((delay) => `${topic}.retry.${delay}`)
    const groups = new Map([
      [groupId, topic],
      ...SCHEDULE.map((delay): [string, string] => [`${groupId}.retry.${delay}`, `${topic}.retry.${delay}`]),
    ])
    const kafka = new Kafka({ clientId: 'fault', brokers, logLevel: logLevel.NOTHING, retry: { retries: 10 } })
    const admin = kafka.admin()
    await admin.connect()
    await admin.createTopics({
      topics: [topic, ...tiers, dlq, out].map((name) => ({ topic: name, numPartitions: PARTITIONS })),
      waitForLeaders: true,
    })
    const delivery = 'exactly-once'
    const fleet = createFleet({ brokers, groupId, topic, schedule: SCHEDULE, out, delivery })
    const [atWork, open, uncommitted, heir] = await Promise.all(['W', 'O', 'C', 'B'].map((name) => fleet.start(name)))
    const zombies = [atWork!, open!, uncommitted!]
    const watch = await watchCommits(kafka, groups)
    const production = await startProduction(kafka, topic, PARTITIONS, { ...PACE, batch: 3, everyMs: 50, slowMs: 100 })
    /** Calls of a process that are not through: their copies are not acknowledged, or they have not even ended. */
    const unfinished = (name: string) =>
      callsOf(fleet.lines().filter(({ worker }) => worker === name)).filter(
        ({ end, routedAt }) => routedAt === undefined && end?.outcome !== 'ok',
      )
    const noted = (name: string, text: string): boolean =>
      fleet.lines().some((line) => line.worker === name && line.what === 'note' && line.text.includes(text))
    try {
      await until('all have partitions and work', () =>
        ['W', 'O', 'C', 'B'].every((name) =>
          fleet.lines().some((line) => line.worker === name && line.what === 'routed'),
        ),
      )
      const stoppedAt = Date.now()
      open!.tell({ do: 'freeze', before: 'sendOffsets' })
      uncommitted!.tell({ do: 'freeze', before: 'commit' })
      const own = fleet
        .lines()
        .filter((line) => line.worker === 'W' && line.what === 'rebalanced' && line.tier === 'main')
      const lanes = own.flatMap((line) => (line.what === 'rebalanced' ? (line.gained ?? []) : []))
      const value = encodeWish({ id: 'slow', fails: 1, fatal: true, ms: SLOW_MS })
      await production.send([{ key: 'slow', value, partition: Number(lanes.at(-1)?.split('/')[1]) }])
      await until('one is at work on what takes long', () =>
        unfinished('W').some(({ begin, end }) => end === undefined && Date.now() - begin.at > 200),
      )
      process.kill(atWork!.pid, 'SIGSTOP')
      await until('two stand still in a transaction', () => noted('O', 'frozen before') && noted('C', 'frozen before'))
      const inFlight = new Map(zombies.map(({ name }) => [name, unfinished(name)]))
      // What the two stand in front of may be a transaction of sends only, of calls that have ended.
      expect(inFlight.get('W')).not.toEqual([])

      await until('another one begins what they had in flight', () => {
        const begun = new Set(
          callsOf(fleet.lines()).flatMap(({ begin }) => (begin.worker === 'B' ? [begin.source] : [])),
        )
        return [...inFlight.values()].flat().every(({ begin }) => begun.has(begin.source))
      })
      const backAt = Date.now()
      for (const { pid } of zombies) process.kill(pid, 'SIGCONT')
      // What stood in front of the commit, or of the offsets, is the first thing that they send.
      await until('the broker has refused both', () => noted('O', '"fenced"') && noted('C', '"fenced"'))
      await until('the third has failed late what it had at work', () =>
        callsOf(fleet.lines()).some(
          ({ begin, end }) => begin.worker === 'W' && begin.at < backAt && end?.outcome === 'failed' && end.at > backAt,
        ),
      )
      await production.stop()
      await untilCommitted(admin, groups, 60_000)
      await Promise.all([...zombies, heir!].map((worker) => worker.stop()))
      await watch.stop()

      const topics = [topic, ...tiers, dlq, out]
      const standing = await readAll(kafka, admin, topics, unique('reader'))
      const main = standing
        .filter((one) => one.topic === topic)
        .map(({ at, key, value }) => ({ place: at, key: String(key), wish: wishIn(value)! }))
      const hops = standing.filter((one) => tiers.includes(one.topic) || one.topic === dlq).map(hopOf)
      const sent = standing
        .filter((one) => one.topic === out)
        .map(({ value }) => (JSON.parse(String(value)) as { place: string }).place)
      const findings = check({
        lines: fleet.lines(),
        produced: main.map(({ place }) => place),
        main: main.map(({ place, key, wish }) => ({
          place,
          key,
          id: wish.id,
          dies: mustDie(wish, MAX_ATTEMPTS),
          sends: wish.send === true,
        })),
        deadLetters: standing.filter((one) => one.topic === dlq).map((one) => hopOf(one).place),
        kills: fleet.kills,
        hops,
        sent,
        acknowledged: production.acknowledged,
        falls: watch.falls,
        commits: watch.history,
        // Who stands still commits nothing, and nothing else is known of what it had done by then.
        uncommittedMs: backAt - stoppedAt + 2_000,
        ordering: 'partition',
        delivery,
      })
      report('zombie', findings, fleet.lines(), { looks: watch.looks, stoppedMs: backAt - stoppedAt })
      expect(findings.problems).toEqual([])
      expect(hops.map(hopText).sort()).toEqual(main.flatMap(({ place, wish }) => hopsOf(place, wish)).sort())
      expect(sent.sort()).toEqual(main.flatMap(({ place, wish }) => (wish.send === true ? [place] : [])).sort())
      // And there was something not to be seen.
      const everything = await readAll(kafka, admin, topics, unique('reader'), { readUncommitted: true })
      expect(everything.length).toBeGreaterThan(standing.length + 1)
    } finally {
      for (const { pid } of zombies) if (isAlive(pid)) process.kill(pid, 'SIGCONT')
      await Promise.allSettled([production.stop(), watch.stop(), fleet.end()])
      await admin.disconnect()
    }
  })
})

const hopText = ({ place, attempt, reason }: Hop): string => `${place} ${attempt}${reason === undefined ? '' : ' dead'}`

/** Every hop that a record with this wish is to make, once. */
function hopsOf(place: string, { fails, fatal }: Wish): string[] {
  if (fatal) return [`${place} 1 dead`]
  return Array.from({ length: Math.min(fails, MAX_ATTEMPTS) }, (_, i) =>
    i + 1 < MAX_ATTEMPTS ? `${place} ${i + 2}` : `${place} ${MAX_ATTEMPTS} dead`,
  )
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
