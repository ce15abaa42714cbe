import { readFileSync, writeFileSync } from 'node:fs'

export type Traces = Record<string, unknown[]>

/** What stories showed on a real broker, by name, in a file that RECORD=1 writes anew. */
export function recordingIn(file: URL, names: readonly string[]) {
  const recorded = (): Traces => JSON.parse(readFileSync(file, 'utf8')) as Traces
  return {
    recorded,
    /** Keeps what was recorded of stories that did not run this time, and drops those that are no more. */
    record(traces: Traces): void {
      const all = { ...recorded(), ...traces }
      const kept = names.map((name) => [name, all[name]])
      writeFileSync(file, `${JSON.stringify(Object.fromEntries(kept), null, 1)}\n`)
    },
  }
}
