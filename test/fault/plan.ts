/**
 * Which fault, when and for how long: drawn from the seed before the run begins, so that the same seed gives the same plan. The
 * first part of the time has each fault alone; then two or three overlap, of different resources.
 */
import { chanceOf, type Chance } from './chance'
import type { Fault } from './faults/fault'

export interface Step {
  /** ms after the load began. */
  readonly at: number
  readonly fault: Fault
  readonly lastsMs: number
  /** What the fault draws from. */
  readonly seed: number
}

/** Records flow for so long before the first fault, ms. */
const WARM_UP = 1_500
/** A run in which the faults hardly fit breathes less between them. */
const BREATH = [300, 2_500] as const
const ALONE = 0.5

export function planOf(seed: number, totalMs: number, faults: readonly Fault[]): Step[] {
  const chance = chanceOf(seed)
  const steps: Step[] = []
  let queue: Fault[] = []
  const take = (taken: readonly Fault[] = []): Fault | undefined => {
    if (queue.length === 0) queue = chance.shuffle(faults)
    const at = queue.findIndex(({ resource }) => taken.every((other) => other.resource !== resource))
    return at < 0 ? undefined : queue.splice(at, 1)[0]
  }
  // So many alone would take more time than there is: then they overlap from the start, or some would never come.
  const average = faults.reduce((sum, { lastsMs: [low, high] }) => sum + (low + high) / 2 + BREATH[0], 0)
  const aloneUntil = average > totalMs * ALONE ? 0 : totalMs * ALONE
  let at = WARM_UP
  while (at < totalMs && faults.length > 0) {
    const group: Fault[] = []
    const size = at < aloneUntil ? 1 : chance.between(1, 3)
    while (group.length < size) {
      const fault = take(group)
      if (!fault) break
      group.push(fault)
    }
    let end = at
    for (const [i, fault] of group.entries()) {
      const lastsMs = chance.between(...fault.lastsMs)
      const from = i === 0 ? at : at + chance.between(0, 800)
      if (from < totalMs) steps.push({ at: from, fault, lastsMs, seed: seedFrom(chance) })
      end = Math.max(end, from + lastsMs)
    }
    at = end + chance.between(...BREATH)
  }
  return steps.sort((a, b) => a.at - b.at)
}

const seedFrom = (chance: Chance): number => chance.between(0, 2 ** 31)

export const planText = (steps: readonly Step[]): string =>
  steps.map(({ at, fault, lastsMs }) => `${(at / 1000).toFixed(1)}s ${fault.name} for ${lastsMs} ms`).join('; ')
