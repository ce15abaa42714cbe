/**
 * npm run bench -- <suite|all> [--runs N] [--small] [--json] [--systems a,b] [--jvm]
 *
 * Each system runs in a process of its own, and the systems take turns over the runs, so that a machine that grows slow
 * half-way is slow for all. `--small` shows that a suite works; its numbers say nothing and are not written down.
 */
// First: it changes how kafkajs, when it is loaded, fills topics.
import './lib/fast-record'
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { startBroker } from '../test/helpers/broker'
import { buildJvm } from './lib/jvm'
import { buildAll } from './lib/library'
import { table, writeReadme } from './lib/report'
import { isOurs, summarise, type Result } from './lib/result'
import { loadSuite, suites, type Measurement, type RunContext, type Suite } from './lib/suite'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean' },
    small: { type: 'boolean' },
    runs: { type: 'string' },
    systems: { type: 'string' },
    jvm: { type: 'boolean' },
    profile: { type: 'string' },
  },
})
const small = values.small ?? false
const runs = Number(values.runs ?? (small ? 1 : 5))
/** Fewer runs show no spread, and a number without its spread is not written down. */
const FEWEST = 3
/** A part of the systems, while working on one; a part is not written down either. */
const part = values.systems?.split(',')
const say = values.json ? console.error : console.log

const PATIENCE = 600_000

function runOnce(suite: Suite, system: string, context: RunContext): Promise<Measurement> {
  return new Promise((resolve, reject) => {
    const args = [suite.name, system, JSON.stringify(context)]
    // What a system prints must not get into the lines of --json.
    const stdio = ['ignore', 2, 2, 'ipc'] as const
    const execArgv = [
      ...(suite.flags ?? []),
      ...(values.profile ? ['--cpu-prof', `--cpu-prof-dir=${values.profile}`] : []),
    ]
    const process = fork(child, args, { execArgv, stdio: [...stdio], timeout: PATIENCE })
    let measured: Measurement | undefined
    process.once('message', (message) => (measured = message as Measurement))
    process.once('exit', (code, signal) => {
      if (measured) resolve(measured)
      else reject(new Error(`${suite.name}: ${system} ended with ${signal ?? code} and measured nothing`))
    })
  })
}

/** Which systems run at the same time. */
function turnsOf(suite: Suite, systems: readonly string[]): string[][] {
  // Where the numbers say nothing, nothing is lost by measuring side by side.
  if (small) return inTurns(systems, 3)
  if (suite.sideBySide === 'all') return [[...systems]]
  const ours = inTurns(systems.filter(isOurs), 1)
  const peers = systems.filter((system) => !isOurs(system))
  return [...ours, ...inTurns(peers, suite.sideBySide === 'peers' ? 4 : 1)]
}

function inTurns(systems: readonly string[], atOnce: number): string[][] {
  return Array.from({ length: Math.ceil(systems.length / atOnce) }, (_, turn) =>
    systems.slice(turn * atOnce, (turn + 1) * atOnce),
  )
}

async function runSuite(suite: Suite, brokers: string[]): Promise<Result[]> {
  const id = (): string => randomBytes(4).toString('hex')
  const prepared = await suite.prepare?.({ brokers, small, id: id() })
  const systems = [...suite.systems, ...(values.jvm ? (suite.jvm ?? []) : [])].filter(
    (system) => part?.includes(system) ?? true,
  )
  const measured = new Map<string, Measurement[]>(systems.map((system) => [system, []]))
  const once = async (system: string, run: number): Promise<void> => {
    const context: RunContext = { brokers, small, prepared, id: id() }
    const measurement = await runOnce(suite, system, { ...context, own: await suite.prepareRun?.(system, context) })
    measured.get(system)?.push(measurement)
    const { lost, duplicated, early, problems } = measurement.counts
    const counts = `${lost} lost, ${duplicated} doubled, ${early} early`
    const value = Number(measurement.value.toPrecision(4)).toLocaleString('en-US')
    say(`${suite.name} ${run}/${runs} ${system}: ${value} ${suite.unit}, ${counts}`)
    if (run === 1 && measurement.fetch) say(`  fetches ${measurement.fetch}`)
    for (const problem of problems) say(`  ${problem}`)
  }
  for (let run = 1; run <= runs; run++) {
    for (const turn of turnsOf(suite, systems)) await Promise.all(turn.map((system) => once(system, run)))
  }
  return summarise(suite, measured)
}

const asked = positionals[0]
if (positionals.length !== 1 || asked === undefined || !(runs >= 1)) {
  console.error(
    `npm run bench -- <${Object.keys(suites).join('|')}|all> [--runs N] [--small] [--json] [--systems a,b] [--jvm] [--profile folder]`,
  )
  process.exit(2)
}
const chosen = await Promise.all((asked === 'all' ? Object.keys(suites) : [asked]).map(loadSuite))

const child = buildAll()
if (values.jvm) await buildJvm()
const given = process.env.KAFKA_BROKERS
// C2 and room in memory, unlike a broker for tests: the broker must not be what is measured.
const own = given ? undefined : await startBroker({ jvm: ['-Xms1g', '-Xmx1g'] })
const brokers = own?.brokers ?? (given ?? '').split(',')
try {
  for (const suite of chosen) {
    const began = performance.now()
    const results = await runSuite(suite, brokers)
    if (values.json) for (const result of results) console.log(JSON.stringify(result))
    else console.log(`\n${table(suite, results)}\n`)
    say(`${suite.name}: ${((performance.now() - began) / 1000).toFixed()} s`)
    if (!small && !part && runs >= FEWEST)
      await writeReadme(suite, results, own?.version ?? process.env.KAFKA_VERSION ?? 'of unknown version')
    // A number from records that were lost or doubled is no number, whichever system it flatters.
    if (results.some(({ system, reconciled }) => isOurs(system) && !reconciled)) process.exitCode = 1
  }
} finally {
  await own?.stop()
}
