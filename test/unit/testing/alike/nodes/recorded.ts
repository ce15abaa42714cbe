import { readFileSync, writeFileSync } from 'node:fs'
import { nodesStories } from './stories'

const FILE = new URL('./recorded.json', import.meta.url)

export type Traces = Record<string, unknown[]>

export function recorded(): Traces {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Traces
}

/** Keeps what was recorded of stories that did not run this time, and drops those that are no more. */
export function record(traces: Traces): void {
  const all = { ...recorded(), ...traces }
  const kept = Object.keys(nodesStories).map((name) => [name, all[name]])
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(kept), null, 1)}\n`)
}
