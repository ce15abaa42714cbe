/**
 * Peers that run in a JVM (`peers/jvm`), with `--jvm`: built once by Maven and javac, in the parent; each run is a process
 * of Java that prints what it counted as one line of JSON.
 */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Counts } from './suite'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')
const SOURCES = 'bench/peers/jvm'
/** Relative to the root, which is the working folder of the children. */
const HOME = '.cache/bench/jvm'

export async function buildJvm(): Promise<void> {
  const libs = resolve(root, HOME, 'libs')
  mkdirSync(resolve(root, HOME), { recursive: true })
  if (!existsSync(libs)) {
    const copy = ['dependency:copy-dependencies', `-DoutputDirectory=${libs}`, '-DincludeScope=runtime']
    await run('mvn', ['-B', '-q', '-f', resolve(root, SOURCES, 'pom.xml'), ...copy], { timeout: 600_000 })
  }
  const sources = (await readdir(resolve(root, SOURCES))).filter((name) => name.endsWith('.java'))
  const args = ['-cp', `${libs}/*`, '-d', resolve(root, HOME, 'classes'), ...sources]
  const { status } = spawnSync('javac', args, { cwd: resolve(root, SOURCES), stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('the peers of the JVM could not be built')
}

export interface FromJvm extends Pick<Counts, 'lost' | 'duplicated' | 'early'> {
  value: number
  /** How it fetched. */
  fetch: string
  /** How late each retry was, sorted, ms. */
  late?: number[]
}

export async function runJvm(main: 'Parallel' | 'Spring', args: (string | number)[]): Promise<FromJvm> {
  const flags = ['-Xmx512m', '-Dorg.slf4j.simpleLogger.defaultLogLevel=off']
  const classpath = [`${HOME}/classes`, `${HOME}/libs/*`].join(':')
  const { stdout } = await run('java', [...flags, '-cp', classpath, main, ...args.map(String)], {
    timeout: 400_000,
    maxBuffer: 64 * 1024 * 1024,
  })
  const line = stdout.trim().split('\n').at(-1) ?? ''
  return JSON.parse(line) as FromJvm
}
