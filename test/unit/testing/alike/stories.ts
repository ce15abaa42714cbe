import { readFileSync, writeFileSync } from 'node:fs'
import { clientStories } from './client-stories'
import { groupStories } from './group-stories'
import { logStories } from './log-stories'
import { handlerStories } from './handler-stories'
import { ownershipStories } from './ownership-stories'
import { producerStories } from './producer-stories'
import type { Story } from './stage'
import { transactionStories } from './transaction-stories'

export const stories: Record<string, Story> = {
  ...logStories,
  ...handlerStories,
  ...groupStories,
  ...clientStories,
  ...producerStories,
  ...transactionStories,
  ...ownershipStories,
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
