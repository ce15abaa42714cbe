/**
 * Runs every example: an example that nobody runs is wrong sooner or later. Each runs on plain Node and the built package, as
 * its users have it. One that names KAFKA_BROKERS is a service: it gets a real broker and is led through its life (see
 * `examples/service.ts`); any other must end by itself with exit code 0. Folders have commands of their own (the demo), and so
 * have tests.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import pLimit from 'p-limit'
import { findBroker } from '../test/helpers/broker-find'
import { userSide } from './examples/as-user'
import { liveThrough } from './examples/service'

const root = resolve(import.meta.dirname, '..')
const folder = join(root, 'examples')
const PATIENCE = 60_000
const AT_ONCE = 3
/** Services without HTTP. */
const WITHOUT_PROBES = new Set(['worker.ts', 'commonjs.cjs'])
/** Nest waits for its providers before it listens, so nobody can ask while the consumer starts. */
const LISTENS_LAST = new Set(['nestjs.ts'])

const examples = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.(ts|cjs)$/.test(entry.name) && !entry.name.includes('.test.'))
  .map(({ name }) => join(folder, name))
  .sort()
const isService = (path: string): boolean => readFileSync(path, 'utf8').includes('KAFKA_BROKERS')

const failed: string[] = []
if (examples.length === 0) failed.push('there are no examples')
const side = await userSide(root)

async function runAlone(path: string): Promise<void> {
  const child = spawn(process.execPath, [side.place(path)], {
    cwd: root,
    timeout: PATIENCE,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  if (code !== 0) throw new Error(`ended with ${String(signal ?? code)}\n${stdout}${stderr}`)
}

async function runService(path: string, brokers: readonly string[]): Promise<void> {
  const name = basename(path)
  const probes = !WITHOUT_PROBES.has(name)
  await liveThrough({ path, probes, listensFirst: probes && !LISTENS_LAST.has(name) }, side, brokers)
}

const found = examples.some(isService) ? await findBroker() : undefined
const stop = found && 'stop' in found ? found.stop : async () => undefined
const limit = pLimit(AT_ONCE)

async function run(path: string): Promise<void> {
  const name = relative(root, path)
  if (isService(path) && found && 'why' in found) {
    console.error(`!!! ${name} DID NOT RUN: ${found.why} !!!`)
    if (process.env.REQUIRE_KAFKA === '1') failed.push(`${name} needs a broker`)
    return
  }
  const began = performance.now()
  const work = isService(path) && found && 'broker' in found ? runService(path, found.broker.brokers) : runAlone(path)
  const problem = await work.then(
    () => undefined,
    (error: unknown) => String(error),
  )
  console.log(`${problem ? 'FAIL' : 'ok  '}  ${name}  ${((performance.now() - began) / 1000).toFixed(1)} s`)
  if (problem) failed.push(`${name}: ${problem}`)
}

try {
  await Promise.all(examples.map((path) => limit(() => run(path))))
} finally {
  await stop()
}
for (const reason of failed) console.error(reason)
process.exitCode = failed.length > 0 ? 1 : 0
