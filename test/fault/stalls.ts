/**
 * The longest time in which nobody worked though there was work: no handler call began anywhere, while a record that was known
 * to be on the main topic waited for its first call. Time in which a fault of a kind that stops everybody lasted, and its time
 * to recover, does not count (`excuses.stall`).
 */
import { callsOf, type Evidence } from './evidence'

export function longestStall({ lines, main = [], acknowledged, windows = [] }: Evidence): number {
  if (acknowledged === undefined || main.length === 0) return 0
  const firstBegin = new Map<string, number>()
  const moments: number[] = []
  for (const { begin } of callsOf(lines)) {
    moments.push(begin.at)
    if (begin.attempt === 1) firstBegin.set(begin.place, Math.min(begin.at, firstBegin.get(begin.place) ?? Infinity))
  }
  moments.sort((a, b) => a - b)
  const waits = main
    .flatMap(({ place, id }) => {
      const since = id === undefined ? undefined : acknowledged.get(id)
      return since === undefined ? [] : [{ since, until: firstBegin.get(place) ?? Infinity }]
    })
    .sort((a, b) => a.until - b.until)
  // Of the records that are begun at a time or later: since when the first of them has waited.
  const waitingSince = new Array<number>(waits.length + 1).fill(Infinity)
  for (let i = waits.length - 1; i >= 0; i--) waitingSince[i] = Math.min(waits[i]!.since, waitingSince[i + 1]!)
  const excused = windows
    .filter(({ excuses }) => excuses.stall)
    .map(({ from, to, recoveryMs }) => [from, to + recoveryMs])

  let longest = 0
  let next = 0
  for (let i = 1; i < moments.length; i++) {
    const [from, to] = [moments[i - 1]!, moments[i]!]
    while (next < waits.length && waits[next]!.until < to) next++
    const idleFrom = Math.max(from, waitingSince[next]!)
    if (to - idleFrom > longest) longest = Math.max(longest, longestOutside(idleFrom, to, excused))
  }
  return longest
}

/** The longest piece of `from` to `to` that no window covers. */
function longestOutside(from: number, to: number, windows: readonly (readonly number[])[]): number {
  let longest = 0
  let at = from
  for (const [begin, end] of [...windows].sort(([a], [b]) => a! - b!)) {
    if (begin! >= to) break
    longest = Math.max(longest, begin! - at)
    at = Math.max(at, end!)
  }
  return Math.max(longest, to - at)
}
