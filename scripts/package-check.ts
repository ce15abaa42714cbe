/**
 * Tests that run the sources never see a fault of the package itself: a wrong exports map, an ESM-only dependency that
 * `require` cannot load, types that resolve in one module kind only. So the packed tarball is installed in an empty
 * folder and used from there, by both module kinds.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const bin = (name: string): string => join(root, 'node_modules', '.bin', name)
const home = mkdtempSync(join(tmpdir(), 'retryline-package-'))
process.on('exit', () => rmSync(home, { recursive: true, force: true }))

const wanted = {
  retryline: ['createResilientConsumer', 'exponential', 'RetryableError', 'NonRetryableError', 'isRetrylineError'],
  'retryline/testing': ['createFakeKafka', 'record', 'runToEnd', 'expectDeadLettered', 'attempt'],
}

function step(title: string, command: string, args: string[], cwd = home): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: 300_000 })
  if (status === 0) {
    console.log(`ok    ${title}`)
    return stdout
  }
  console.error(`FAIL  ${title}\n${stdout}${stderr}${error ? String(error) : ''}`)
  process.exit(1)
}

function check(title: string, problems: string[]): void {
  if (problems.length === 0) return console.log(`ok    ${title}`)
  console.error(`FAIL  ${title}\n${problems.join('\n')}`)
  process.exit(1)
}

step('build', 'npm', ['run', '--silent', 'build'], root)

const built = readdirSync(join(root, 'dist')).filter((name) => !name.endsWith('.map'))
check(
  'kafkajs is neither bundled nor imported, not even its types',
  built.filter((name) =>
    /(from|import|require)\s*\(?\s*['"]kafkajs/.test(readFileSync(join(root, 'dist', name), 'utf8')),
  ),
)

const packed = JSON.parse(step('npm pack', 'npm', ['pack', '--json', '--pack-destination', home], root)) as [
  { filename: string; files: { path: string }[] },
]
const tarball = join(home, packed[0].filename)
check(
  'nothing but the build and the documents is packed',
  packed[0].files
    .map(({ path }) => path)
    .filter((path) => !/^(dist\/|docs\/[a-z-]+\.md$|package\.json$|[A-Z]+(\.md)?$)/.test(path)),
)

step('publint', bin('publint'), ['run', tarball, '--strict'])
step('are the types wrong', bin('attw'), [tarball, '--profile', 'node16'])

const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  devDependencies: Record<string, string>
}
writeFileSync(join(home, 'package.json'), '{"name":"consumer","private":true}')
const beside = ['kafkajs', '@types/node'].map((name) => `${name}@${devDependencies[name]}`)
step('install the tarball', 'npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', tarball, ...beside])

const names = JSON.stringify(wanted)
writeFileSync(
  join(home, 'both.mjs'),
  `import { createRequire } from 'node:module'
const require = createRequire(import.meta.url)
const problems = []
for (const [entry, wanted] of Object.entries(${names})) {
  const esm = await import(entry)
  const cjs = require(entry)
  const lists = [esm, cjs].map((module) => Object.keys(module).filter((key) => !['default', 'module.exports'].includes(key)).sort())
  for (const name of wanted) {
    if (esm[name] === undefined) problems.push(entry + ' has no ' + name + ' by import')
    if (cjs[name] === undefined) problems.push(entry + ' has no ' + name + ' by require')
  }
  if (String(lists[0]) !== String(lists[1])) problems.push(entry + ' differs: ' + lists[0] + ' by import, ' + lists[1] + ' by require')
}
const esm = await import('retryline')
const cjs = require('retryline')
if (!esm.isRetrylineError(new cjs.RetryableError('x'), 'RETRYLINE_RETRYABLE')) problems.push('an error of the CJS copy is a stranger to the ESM copy')
if (problems.length > 0) { console.error(problems.join('\\n')); process.exit(1) }
`,
)
// Without require(esm), as on the older Nodes: there an ESM-only dependency breaks the CJS build.
step('import and require, side by side', process.execPath, ['--no-experimental-require-module', 'both.mjs'])

const consumer = `import { Kafka } from 'kafkajs'
import { createResilientConsumer, exponential, RetryableError, NonRetryableError } from 'retryline'
import { createFakeKafka } from 'retryline/testing'

const handler = async ({ message }: { message: { value: Buffer | null } }): Promise<void> => {
  if (message.value === null) throw new NonRetryableError('no value')
  throw new RetryableError('later', { after: 1000 })
}
export const real = createResilientConsumer({
  kafka: new Kafka({ brokers: ['127.0.0.1:9092'] }),
  groupId: 'billing',
  topic: 'orders',
  schedule: exponential({ first: '1s', factor: 2, max: '10m', retries: 6, jitter: 0.2 }),
  handler,
})
export const fake = createResilientConsumer({
  kafka: createFakeKafka({ topics: { orders: 3 } }),
  groupId: 'billing',
  topic: 'orders',
  schedule: ['1m', '10m', '1h'],
  handler,
})
`
writeFileSync(join(home, 'consumer.mts'), consumer)
writeFileSync(join(home, 'consumer.cts'), consumer)
const options = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'node16', '--moduleResolution', 'node16']
step('the types serve an ES module', bin('tsc'), [...options, 'consumer.mts'])
step('the types serve a CommonJS module', bin('tsc'), [...options, 'consumer.cts'])
