/**
 * The library as users get it. The sources run by way of tsx would be slower: it keeps the names of functions, which
 * makes every closure dear. `buildLibrary` is called once, in the parent; the systems only import.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath, pathToFileURL } from 'node:url'

import type * as Library from '../../src/index'

const root = new URL('../../', import.meta.url)
const folder = new URL('.cache/bench/', root)

export function buildLibrary(): void {
  const args = ['tsup', '--no-dts', '--silent', '--out-dir', fileURLToPath(folder)]
  const { status } = spawnSync('npx', args, { cwd: fileURLToPath(root), stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('the library could not be built, so there is nothing to measure')
}

export function library(): Promise<typeof Library> {
  const entry = new URL('index.js', folder)
  return import(pathToFileURL(fileURLToPath(entry)).href) as Promise<typeof Library>
}
