/**
 * The built test kit under the test runners that its users have: jest, node:test and vitest, as ES modules and as CommonJS,
 * with the runner's fake timers on and off (`test/runners`), and the examples of tests (`examples/testing`). One line for
 * each; a runner that finds fewer tests than there are has failed too.
 */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const PATIENCE = 120_000
const BUILD_PATIENCE = 300_000

interface Run {
  readonly title: string
  readonly tests: number
  readonly args: readonly string[]
  /** The number of tests that passed, in the runner's own report. */
  readonly passed: RegExp
}

const inModules = (path: string): string => join('node_modules', path)
const jest = inModules('jest/bin/jest.js')
const vitest = [inModules('vitest/vitest.mjs'), 'run']

const nodeTest = (title: string, tests: number, ...files: string[]): Run => ({
  title: `node:test, ${title}`,
  tests,
  args: ['--test', '--test-reporter=tap', ...files],
  passed: /^# pass (\d+)$/m,
})
const ofJest = (title: string, tests: number, args: string[], flags: string[] = []): Run => ({
  title: `jest, ${title}`,
  tests,
  args: [...flags, jest, '--ci', '--no-cache', ...args],
  passed: /^Tests: .*?(\d+) passed/m,
})
const ofVitest = (title: string, tests: number, ...args: string[]): Run => ({
  title: `vitest, ${title}`,
  tests,
  args: [...vitest, ...args],
  passed: /^ *Tests +(\d+) passed/m,
})

const example = { testMatch: ['**/jest.test.cjs'], transform: {} }

const runs: readonly Run[] = [
  nodeTest('CommonJS', 2, 'test/runners/node-test/cjs.test.cjs'),
  nodeTest('ES modules, both builds', 4, 'test/runners/node-test/esm.test.mjs'),
  nodeTest('mock timers before the package', 1, 'test/runners/node-test/too-early.test.mjs'),
  nodeTest('the example', 3, 'examples/testing/node-test.test.mjs'),
  ofJest('CommonJS', 2, ['--config', 'test/runners/jest-cjs/jest.config.cjs']),
  ofJest('fake timers always', 2, ['--config', 'test/runners/jest-always-fake/jest.config.cjs']),
  ofJest(
    'ES modules, both builds',
    3,
    ['--config', 'test/runners/jest-esm/jest.config.mjs'],
    ['--experimental-vm-modules'],
  ),
  ofJest('the example', 3, ['--rootDir', 'examples/testing', '--config', JSON.stringify(example)]),
  ofVitest('both builds, fake timers before and after', 6, '--config', 'test/runners/vitest/vitest.config.mjs'),
  ofVitest('the example', 3, '--config', 'examples/testing/vitest.config.mjs'),
]

const newest = (folder: string): number =>
  Math.max(
    ...readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => statSync(join(parentPath, name)).mtimeMs),
  )

function run(
  args: readonly string[],
  command = process.execPath,
  timeout = PATIENCE,
): Promise<{ status: number | null; output: string }> {
  return new Promise((done) => {
    const child = spawn(command, args, {
      cwd: root,
      env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0', NODE_NO_WARNINGS: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout,
    })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.on('error', (error) => done({ status: -1, output: String(error) }))
    child.on('close', (status) => done({ status, output }))
  })
}

async function one({ title, tests, args, passed }: Run): Promise<boolean> {
  const began = performance.now()
  const { status, output } = await run(args)
  const count = Number(passed.exec(output)?.[1] ?? 0)
  const ok = status === 0 && count === tests
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  console.log(`${ok ? 'ok  ' : 'FAIL'}  ${title}: ${count} of ${tests} passed  ${seconds} s`)
  if (!ok) console.error(`exit code ${status}\n${output}`)
  return ok
}

const built = join(root, 'dist', 'testing.d.cts')
if (!existsSync(built) || statSync(built).mtimeMs < newest(join(root, 'src'))) {
  const { status, output } = await run(['run', '--silent', 'build'], 'npm', BUILD_PATIENCE)
  if (status !== 0) throw new Error(`the build failed\n${output}`)
  console.log('ok    built')
}

// Two at a time: most of a runner's time is its start.
const waiting = [...runs]
const results: boolean[] = []
async function worker(): Promise<void> {
  for (let next = waiting.shift(); next; next = waiting.shift()) results.push(await one(next))
}
await Promise.all([worker(), worker()])
process.exitCode = results.length === runs.length && results.every(Boolean) ? 0 : 1
