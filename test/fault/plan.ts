/**
 * Which fault, when and for how long: drawn from the seed before the run begins, so that the same seed gives the same plan. The
 * first part of the time has each fault alone; then up to three overlap, of different resources.
 */
import { chanceOf } from './chance'
import type { Fault } from './faults/fault'

export interface Step {
  /** ms after its group begins. */
  readonly at: number
  readonly fault: Fault
  readonly lastsMs: number
  /** What the fault draws from. */
  readonly seed: number
}

/** Faults that overlap; the next group begins when these are undone and a while has passed. */
export interface Group {
  readonly steps: readonly Step[]
  readonly breathMs: number
}

/** A short run breathes less between faults, and has shorter ones. */
const SHORT_MS = 90_000
const SHORT_LAST = 1_500
const BREATH = [1_000, 10_000] as const
const SHORT_BREATH = [200, 600] as const
/** How long it takes to do and undo a fault, beside what it lasts: a guess, for the length of the plan. */
const EFFORT = 3_000

export function planOf(seed: number, totalMs: number, faults: readonly Fault[]): Group[] {
  if (faults.length === 0) return []
  const chance = chanceOf(seed)
  const short = totalMs < SHORT_MS
  const [fewest, most] = short ? SHORT_BREATH : BREATH
  const groups: Group[] = []
  let queue: Fault[] = []
  const take = (taken: readonly Fault[]): Fault | undefined => {
    if (queue.length === 0) queue = chance.shuffle(faults)
    const at = queue.findIndex(({ resource }) => taken.every((other) => other.resource !== resource))
    return at < 0 ? undefined : queue.splice(at, 1)[0]
  }
  for (let at = 0; at < totalMs;) {
    // In a short run most would never come if each came alone.
    const size = short ? 3 : at < totalMs / 2 ? 1 : chance.between(1, 3)
    const steps: Step[] = []
    while (steps.length < size) {
      const fault = take(steps.map((step) => step.fault))
      if (!fault) break
      const [low, high] = fault.lastsMs
      const lastsMs = chance.between(low, short ? Math.max(low, Math.min(high, SHORT_LAST)) : high)
      steps.push({
        at: steps.length === 0 ? 0 : chance.between(0, 800),
        fault,
        lastsMs,
        seed: chance.between(0, 2 ** 31),
      })
    }
    const breathMs = chance.between(fewest, most)
    groups.push({ steps, breathMs })
    at += Math.max(...steps.map((step) => step.at + step.lastsMs)) + breathMs + (short ? 0 : EFFORT)
  }
  return groups
}

export const planText = (groups: readonly Group[]): string =>
  groups
    .map(({ steps }) =>
      steps.map(({ at, fault, lastsMs }) => `${fault.name}${at > 0 ? ` +${at}` : ''} (${lastsMs} ms)`).join(' with '),
    )
    .join('; ')
