/**
 * What is measured, as users run it: the library as it is published, and the systems as plain JavaScript in plain Node.
 * By way of tsx both would be slower: it keeps the names of functions, which makes every closure dear, and it takes part
 * in every import. `buildAll` is called once, in the parent; `library` in the children, whose working folder is the root.
 */
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

import type * as Library from '../../src/index'

const root = resolve(import.meta.dirname, '../..')
const published = '.cache/bench/library'
const systems = '.cache/bench/systems'

function tsup(...args: string[]): void {
  const { status } = spawnSync('npx', ['tsup', '--silent', ...args], { cwd: root, stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('what is to be measured could not be built')
}

/** Returns the script that runs one system in a process of its own, see child.ts. */
export function buildAll(): string {
  tsup('--no-dts', '--out-dir', published)
  const external = ['kafkajs-async-retry', 'tinybench'].flatMap((name) => ['--external', name])
  tsup('bench/lib/child.ts', '--no-config', '--format', 'esm', '--target', 'node20', '--out-dir', systems, ...external)
  return resolve(root, systems, 'child.js')
}

export function library(): Promise<typeof Library> {
  return import(pathToFileURL(resolve(published, 'index.js')).href) as Promise<typeof Library>
}
