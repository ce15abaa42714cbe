/**
 * One run of the fault suite: a cluster of its own, a load, workers under a supervisor, a plan of faults; then the faults end,
 * the workers drain, and what stands on the topics is reconciled with what the workers wrote down.
 */
import { Kafka, logLevel } from 'kafkajs'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startBroker, type Broker } from '../helpers/broker'
import { createTopicsEverywhere } from '../helpers/topics'
import { AUTHORIZED } from './acls'
import { check, storyOf, type Findings } from './check'
import { changedBytes } from './bytes'
import { createCrew, openLog, type Crew } from './crew'
import { untilCommitted, watchCommits, type CommitWatch } from './cluster'
import type { World } from './faults/fault'
import { createFleet } from './fleet'
import type { SuiteOptions } from './options'
import { mustDie, wishIn } from './payload'
import { planOf, planText } from './plan'
import { startProduction, type Production } from './producer'
import { hopOf, readAll, type Standing } from './reader'
import { carryOut, type CarriedOut, type Window } from './timeline'

const SCHEDULE = ['1s', '3s']
const PARTITIONS = 6
const WORKERS = 3
const DRAIN_WITHIN = 120_000
/** Three nodes and the workers share what a small machine has. */
const JVM = ['-Xmx384m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto']

/** The controller looks every second whether leaders are where they are preferred: see faults/leaders.ts. */
const CONFIG = {
  'leader.imbalance.check.interval.seconds': 1,
  'leader.imbalance.per.broker.percentage': 0,
}

/** Rights can be taken away (acls.ts) from one node only: three with an authorizer let nobody in, themselves included, before they have met. */
function configOf(nodes: 1 | 3): Record<string, string | number> {
  return nodes === 1 ? { ...CONFIG, ...AUTHORIZED } : CONFIG
}

export interface Outcome {
  readonly findings: Findings
  readonly faults: CarriedOut['faults']
  readonly notBroughtAbout: CarriedOut['notBroughtAbout']
  readonly problems: readonly string[]
  readonly counts: Readonly<
    Record<'kafkajsDeaths' | 'lingering' | 'failedStarts' | 'acknowledged' | 'staleCommits', number>
  >
  /** Where the evidence lies; it is removed where there is no problem. */
  readonly folder: string
  readonly story: string
}

export async function runSuite(options: SuiteOptions, say: (text: string) => void): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'retryline-fault-run-'))
  const { log, close } = openLog(folder, process.env.FAULT_LOG === '1')
  const totalMs = options.minutes * 60_000
  const steps = planOf(options.seed, totalMs, options.faults)
  say(`plan: ${planText(steps)}`)
  writeFileSync(join(folder, 'plan.txt'), `${JSON.stringify({ ...options, faults: undefined })}\n${planText(steps)}\n`)

  const topic = 'orders'
  const groupId = 'billing'
  const out = `${topic}.out`
  const dlq = `${topic}.dlq`
  const tiers = SCHEDULE.map((delay) => `${topic}.retry.${delay}`)
  const groups = new Map([
    [groupId, topic],
    ...SCHEDULE.map((delay): [string, string] => [`${groupId}.retry.${delay}`, `${topic}.retry.${delay}`]),
  ])
  const windows: Window[] = []
  const problems: string[] = []
  /** What stood on topics that were deleted. */
  const kept: Standing[] = []
  let broker: Broker | undefined
  let crew: Crew | undefined
  let production: Production | undefined
  let watch: CommitWatch | undefined
  try {
    broker = await started(options.nodes, say)
    const kafka = pastTheProxies(broker)
    const admin = kafka.admin()
    await admin.connect()
    try {
      await createTopicsEverywhere(
        admin,
        [topic, ...tiers, dlq, out].map((name) => ({
          topic: name,
          numPartitions: name === out ? 1 : PARTITIONS,
          replicationFactor: options.nodes,
        })),
      )
      const { brokers } = broker
      const { delivery, ordering } = options
      const fleet = createFleet(
        {
          brokers,
          groupId,
          topic,
          schedule: SCHEDULE,
          out,
          delivery,
          ordering,
          topicSetup: 'verify',
          requestTimeout: 5_000,
        },
        folder,
      )
      crew = createCrew(fleet, log)
      await Promise.all(Array.from({ length: WORKERS }, crew.join))
      watch = await watchCommits(kafka, groups, 30)
      production = await startProduction(kafka, topic, PARTITIONS)
      const { send } = production
      const world: World = {
        crew,
        broker,
        nodes: options.nodes,
        kafka,
        admin,
        topic,
        tiers,
        dlq,
        topics: [topic, ...tiers, dlq],
        groups,
        produce: send,
        lines: () => fleet.lines(),
        async beforeRemake(name) {
          kept.push(...(await readAll(kafka, admin, [name], `reader-${kept.length}`)))
        },
        remade: (name) => watch?.forget(name),
        log,
      }
      const { faults, notBroughtAbout, problems: failed } = await carryOut(world, steps, windows, totalMs)
      problems.push(...failed)
      await production.stop()
      log('faults are over, the workers drain')
      await untilCommitted(admin, groups, DRAIN_WITHIN).catch((error: Error) => {
        problems.push(`not drained: ${error.message}`)
        for (const slot of crew!.alive) crew!.tell(slot, { do: 'health' })
      })
      await crew.stopAll()
      await watch.stop()
      problems.push(...crew.unexpected)
      if (watch.looks === 0) problems.push('the commits could not be watched')

      const standing = [...kept, ...(await readAll(kafka, admin, [topic, ...tiers, dlq, out], 'reader'))]
      writeFileSync(
        join(folder, 'hops.jsonl'),
        standing
          .filter((one) => tiers.includes(one.topic) || one.topic === dlq)
          .map((one) => `${JSON.stringify({ ...hopOf(one), error: String(one.headers['x-error']) })}\n`)
          .join(''),
      )
      const on = (name: string): typeof standing => standing.filter((one) => one.topic === name)
      const lines = fleet.lines()
      const maxAttempts = SCHEDULE.length + 1
      const findings = check({
        lines,
        produced: on(topic).map(({ at }) => at),
        deadLetters: on(dlq).map((one) => hopOf(one).place),
        kills: fleet.kills,
        outages: windows.filter(({ excuses }) => excuses.copies),
        main: on(topic).map(({ at, key, value }) => {
          const wish = wishIn(value)
          return {
            place: at,
            key: key?.toString('latin1') ?? null,
            ...(wish !== undefined && { id: wish.id, dies: mustDie(wish, maxAttempts), sends: wish.send === true }),
          }
        }),
        hops: standing.filter((one) => tiers.includes(one.topic) || one.topic === dlq).map(hopOf),
        sent: on(out).map(({ value }) => (JSON.parse(String(value)) as { place: string }).place),
        acknowledged: production.acknowledged,
        windows,
        falls: watch.falls,
        commits: watch.history,
        ordering,
        delivery,
      })
      const copies = standing.filter((one) => tiers.includes(one.topic) || one.topic === dlq)
      problems.push(...findings.problems, ...changedBytes(on(topic), copies))
      const { kafkajsDeaths, lingering, failedStarts } = crew
      const { stale, history } = watch
      const staleCommits = stale.length
      const counts = {
        kafkajsDeaths,
        lingering,
        failedStarts,
        acknowledged: production.acknowledged.size,
        staleCommits,
      }
      writeFileSync(join(folder, 'commits.jsonl'), commitLines(history, stale))
      writeFileSync(join(folder, 'windows.json'), JSON.stringify(windows))
      writeFileSync(join(folder, 'problems.txt'), `${problems.join('\n')}\n`)
      const place = /\S+\/\d+@\d+/.exec(findings.problems[0] ?? '')?.[0]
      const story = place === undefined ? '' : storyOf(lines, place)
      if (problems.length === 0 && process.env.FAULT_KEEP !== '1') rmSync(folder, { recursive: true, force: true })
      return { findings, faults, notBroughtAbout, problems, counts, folder, story }
    } finally {
      await admin.disconnect().catch(() => undefined)
    }
  } finally {
    await Promise.allSettled([production?.stop(), watch?.stop(), crew?.end()])
    await broker?.stop()
    close()
  }
}

/** Every commit that was seen, for a person to read. */
function commitLines(history: CommitWatch['history'], stale: readonly string[]): string {
  const lines = [...history].flatMap(([place, seen]) =>
    seen.map(({ at, offset, done }) => ({
      at,
      place,
      offset: `${offset}`,
      done: done.map(({ from, to }) => `${from}-${to}`),
    })),
  )
  return [...stale.map((text) => ({ stale: text })), ...lines].map((line) => `${JSON.stringify(line)}\n`).join('')
}

/** Three nodes that begin at once on a busy machine may not find each other in time: then they begin once more. */
async function started(nodes: 1 | 3, say: (text: string) => void): Promise<Broker> {
  const start = (): Promise<Broker> => startBroker({ nodes, proxied: true, jvm: JVM, config: configOf(nodes) })
  return start().catch((error: Error) => {
    say(`the cluster did not start, and is started once more: ${error.message}`)
    return start()
  })
}

/** What the suite itself sees and sends goes past the proxies. */
function pastTheProxies({ brokers, ports }: Broker): Kafka {
  const direct = new Map(brokers.map((address, i) => [Number(address.split(':')[1]), ports[i]!]))
  return new Kafka({
    clientId: 'fault-suite',
    brokers: [...brokers],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1_000,
    requestTimeout: 10_000,
    retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 30 },
    socketFactory: ({ host, port, onConnect }) => connect({ host, port: direct.get(port) ?? port }, onConnect),
  })
}
