/**
 * The field cases and their state: `npm run cases`. Runs the tests of test/cases and prints one line for each case: its
 * number, where it ran, what came of it. The real broker is the one that every test run finds; `npm run cases -- 3.9.2`
 * starts one of that version instead, and several versions run one after the other. Ends with 1 where a case failed, did
 * not run where it must, or has neither a test nor a step that it waits for.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { CASES, type FieldCase } from '../test/cases/cases'
import { startBroker } from '../test/helpers/broker'
import { findBroker } from '../test/helpers/broker-find'

interface Outcome {
  readonly passed: number
  readonly failed: number
}
/** By the number of the case. */
type Outcomes = Map<string, Outcome>

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly {
      readonly title: string
      readonly fullName: string
      readonly status: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

const root = resolve(import.meta.dirname, '..')
const required = process.env.REQUIRE_KAFKA === '1'
const problems: string[] = []

/** Runs the tests of one project; what became of each case, and a line in `problems` for what belongs to none. */
function run(project: 'offline' | 'broker', env: Record<string, string> = {}): Outcomes {
  const folder = mkdtempSync(join(tmpdir(), 'retryline-cases-'))
  const outcomes: Outcomes = new Map()
  try {
    const path = join(folder, 'report.json')
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const reporter = ['--reporter=json', `--outputFile.json=${path}`]
    const { status, stderr } = spawnSync(
      process.execPath,
      [vitest, 'run', '--project', project, 'test/cases', ...reporter],
      { cwd: root, env: { ...process.env, ...env }, encoding: 'utf8', maxBuffer: 1 << 28 },
    )
    if (!existsSync(path)) {
      problems.push(`${project}: no report (exit code ${status}): ${stderr}`)
      return outcomes
    }
    const report = JSON.parse(readFileSync(path, 'utf8')) as Report
    const seen = problems.length
    for (const file of report.testResults) {
      const name = basename(file.name)
      if (file.status === 'failed' && file.assertionResults.length === 0) problems.push(`${name}: ${file.message}`)
      for (const { title, fullName, status: result, failureMessages } of file.assertionResults) {
        const [number] = /^R\d\d\b/.exec(title) ?? []
        if (result === 'failed') problems.push(`${name}: ${fullName}\n${failureMessages.join('\n')}`)
        if (name === 'cases.test.ts') continue
        if (number === undefined || !CASES.some((one) => one.number === number)) {
          problems.push(`${name}: '${title}' begins with no number of a case`)
          continue
        }
        const { passed, failed } = outcomes.get(number) ?? { passed: 0, failed: 0 }
        outcomes.set(number, {
          passed: passed + Number(result === 'passed'),
          failed: failed + Number(result !== 'passed'),
        })
      }
    }
    if (status !== 0 && problems.length === seen) problems.push(`${project}: exit code ${status}: ${stderr}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return outcomes
}

/** The runs on real brokers, by the name of their column. */
async function onReal(versions: readonly string[]): Promise<Map<string, Outcomes>> {
  const runs = new Map<string, Outcomes>()
  for (const version of versions) {
    const { brokers, stop } = await startBroker({ version })
    try {
      runs.set(`real ${version}`, run('broker', { KAFKA_BROKERS: brokers.join(), KAFKA_VERSION: version }))
    } finally {
      await stop()
    }
  }
  if (versions.length > 0) return runs
  const found = await findBroker()
  if ('why' in found) {
    console.error(`\n!!! THE CASES DID NOT RUN ON A REAL BROKER: ${found.why} !!!\n`)
    if (required) problems.push(`REQUIRE_KAFKA=1 asks for a real broker: ${found.why}`)
    return runs
  }
  try {
    const { brokers, version } = found.broker
    runs.set(`real ${version}`, run('broker', { KAFKA_BROKERS: brokers.join() }))
  } finally {
    await found.stop()
  }
  return runs
}

const fake = run('offline')
const real = await onReal(process.argv.slice(2))

function shown(outcomes: Outcomes, number: string): string {
  const outcome = outcomes.get(number)
  if (!outcome) return '-'
  return outcome.failed > 0 ? 'FAILED' : outcome.passed === 1 ? 'ok' : `ok (${outcome.passed})`
}

function resultOf(one: FieldCase): string {
  if (one.waitsFor !== undefined) return `waits for ${one.waitsFor}`
  const missing: string[] = []
  const must = [
    ...(one.notOnFake === undefined ? [['the fake', fake] as const] : []),
    ...(one.needs === 'broker' ? [...real] : []),
  ]
  for (const [name, outcomes] of must) if (!outcomes.has(one.number)) missing.push(name)
  if (one.needs === 'broker' && real.size === 0 && required) missing.push('a real broker')
  const all = [fake, ...real.values()].flatMap((outcomes) => outcomes.get(one.number) ?? [])
  if (missing.length > 0) problems.push(`${one.number} has no test on ${missing.join(' and ')}`)
  if (missing.length > 0 || all.length === 0) return 'NO TEST'
  if (all.some(({ failed }) => failed > 0)) return 'FAILED'
  const skipped = one.needs === 'broker' && real.size === 0 ? 'passed, NOT ON A REAL BROKER' : 'passed'
  return one.later === undefined ? skipped : `${skipped}; the rest waits for ${one.later}`
}

const rows = CASES.map((one) => [
  one.number,
  one.kind,
  one.needs,
  shown(fake, one.number),
  ...[...real.values()].map((outcomes) => shown(outcomes, one.number)),
  resultOf(one),
])
const table = [['case', 'kind', 'needs', 'fake', ...real.keys(), 'result'], ...rows]
const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)))
for (const row of table)
  console.log(
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )

const count = (what: RegExp): number => rows.filter((row) => what.test(row.at(-1)!)).length
console.log(
  `${rows.length} cases: ${count(/^passed/)} passed, ${count(/^FAILED/)} failed, ${count(/^waits/)} wait for a later step, ${count(/^NO TEST/)} without a test`,
)
for (const problem of problems) console.error(`\n${problem}`)
process.exitCode = problems.length > 0 || count(/^(FAILED|NO TEST)/) > 0 ? 1 : 0
