/**
 * The faults of kafkajs that the fake copies, as stories told to kafkajs on a real broker and to the fake. As in
 * test/unit/testing/alike: traps.test.ts holds the fake to recorded.json, traps.real.test.ts holds recorded.json to
 * kafkajs (RECORD=1 writes it anew).
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { commitStories } from './commit-stories'
import { generationStories } from './generation-stories'
import { loopStories } from './loop-stories'
import { ruleStories } from './rule-stories'
import { shutdownStories } from './shutdown-stories'
import type { Story } from './staging'

export const stories: Record<string, Story> = {
  ...loopStories,
  ...generationStories,
  ...commitStories,
  ...shutdownStories,
  ...ruleStories,
}

const FILE = new URL('./recorded.json', import.meta.url)

export type Traces = Record<string, unknown[]>

export function recorded(): Traces {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Traces
}

/** Keeps what was recorded of stories that did not run this time, and drops those that are no more. */
export function record(traces: Traces): void {
  const all = { ...recorded(), ...traces }
  const kept = Object.keys(stories).map((name) => [name, all[name]])
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(kept), null, 1)}\n`)
}
