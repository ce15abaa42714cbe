/**
 * Runs every example: an example that nobody runs is wrong sooner or later. Each `examples/*.ts` and
 * `examples/<name>/main.ts` must end by itself with exit code 0; the demo has a command of its own. Files whose names begin with `_`
 * are parts of others. One that reads KAFKA_BROKERS gets a real broker.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { findBroker } from '../test/helpers/broker-find'

const root = resolve(import.meta.dirname, '..')
const folder = join(root, 'examples')
const APART = new Set(['demo'])
const PATIENCE = 60_000

const examples = (existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : [])
  .filter(({ name }) => !name.startsWith('_') && !APART.has(name))
  .map((entry) => join(folder, entry.name, entry.isDirectory() ? 'main.ts' : ''))
  .map((path) => path.replace(/\/$/, ''))
  .filter((path) => path.endsWith('.ts') && existsSync(path))
  .sort()

const failed: string[] = []
if (examples.length === 0) failed.push('there are no examples')

const needsBroker = (path: string): boolean => readFileSync(path, 'utf8').includes('KAFKA_BROKERS')
const found = examples.some(needsBroker) ? await findBroker() : undefined
const stop = found && 'stop' in found ? found.stop : async () => undefined
try {
  for (const path of examples) {
    const name = relative(root, path)
    if (needsBroker(path) && found && 'why' in found) {
      console.error(`!!! ${name} DID NOT RUN: ${found.why} !!!`)
      if (process.env.REQUIRE_KAFKA === '1') failed.push(`${name} needs a broker`)
      continue
    }
    const brokers = found && 'broker' in found ? { KAFKA_BROKERS: found.broker.brokers.join() } : {}
    const began = performance.now()
    const { status, signal, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', path], {
      cwd: root,
      env: { ...process.env, ...brokers },
      encoding: 'utf8',
      timeout: PATIENCE,
    })
    const ok = status === 0
    console.log(`${ok ? 'ok  ' : 'FAIL'}  ${name}  ${((performance.now() - began) / 1000).toFixed(1)} s`)
    if (ok) continue
    failed.push(`${name} ended with ${signal ?? status}`)
    console.error(`${stdout}${stderr}`)
  }
} finally {
  await stop()
}
for (const reason of failed) console.error(reason)
process.exitCode = failed.length > 0 ? 1 : 0
