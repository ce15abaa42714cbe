/** Carries the plan out, and writes down when each fault really began and was undone. */
import { chanceOf } from './chance'
import { NothingToDo, NotSeen, type Fault, type World } from './faults/fault'
import type { Group, Step } from './plan'

export interface Window {
  readonly fault: string
  readonly from: number
  /** When it was undone; Infinity while it lasts. */
  to: number
  readonly excuses: Fault['excuses']
  readonly recoveryMs: number
}

export interface CarriedOut {
  /** By kind, how often each was done and seen to do what it is about. */
  readonly faults: Readonly<Record<string, number>>
  /** By kind, how often there was nothing to do, or nobody saw what it did. */
  readonly notBroughtAbout: Readonly<Record<string, number>>
  /** Kinds that never came about, and faults that could not be done or undone. */
  readonly problems: readonly string[]
}

/** Records flow for so long before the first fault, ms. */
const WARM_UP = 1_500
const RECOVERY = 12_000
/** A kind that the plan did not bring about is tried so often again, alone. */
const MORE_TRIES = 2

/**
 * Group by group, each when the one before is undone: on a slow machine, where a broker takes long to start, fewer groups come
 * in the time there is, though each fault of the plan comes once. Resolves when all faults are undone. No fault ends the run
 * before its time: what was not brought about is counted, and what failed is a problem at the end.
 */
export async function carryOut(
  world: World,
  groups: readonly Group[],
  windows: Window[],
  totalMs: number,
): Promise<CarriedOut> {
  const startedAt = Date.now()
  const tried = new Map<Fault, Step>()
  const faults: Record<string, number> = {}
  const notBroughtAbout: Record<string, number> = {}
  const problems: string[] = []
  const once = async (step: Step): Promise<void> => {
    const { fault } = step
    tried.set(fault, step)
    try {
      const counts = (await came(world, step, windows)) ? faults : notBroughtAbout
      counts[fault.name] = (counts[fault.name] ?? 0) + 1
    } catch (error) {
      problems.push(`a fault failed: ${fault.name}: ${String(error)}`)
      world.log(problems.at(-1)!)
    }
  }

  await at(startedAt + WARM_UP)
  for (const { steps, breathMs } of groups) {
    const late = Date.now() - startedAt > totalMs
    if (late && steps.every(({ fault }) => tried.has(fault))) continue
    const groupAt = Date.now()
    await Promise.all(steps.map((step) => at(groupAt + step.at).then(() => once(step))))
    await at(Date.now() + breathMs)
  }
  for (const [fault, step] of tried) {
    for (let more = 1; more <= MORE_TRIES && faults[fault.name] === undefined; more++)
      await once({ ...step, seed: step.seed + more })
    if (faults[fault.name] === undefined) problems.push(`${fault.name} never came about`)
  }
  return { faults, notBroughtAbout, problems }
}

/** Does one fault and undoes it; whether it came about. */
async function came(world: World, { fault, lastsMs, seed }: Step, windows: Window[]): Promise<boolean> {
  const { name, excuses, recoveryMs = RECOVERY } = fault
  const window: Window = { fault: name, from: Date.now(), to: Infinity, excuses, recoveryMs }
  windows.push(window)
  world.log(`${name} begins`)
  try {
    const undo = await fault.begin(world, chanceOf(seed))
    await at(Date.now() + lastsMs)
    await undo()
    world.log(`${name} is undone`)
    return true
  } catch (error) {
    if (error instanceof NothingToDo) windows.splice(windows.indexOf(window), 1)
    else if (!(error instanceof NotSeen)) throw error
    world.log(`${name} did not come about: ${error.message}`)
    return false
  } finally {
    window.to = Date.now()
  }
}

function at(time: number): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => resolve()
    setTimeout(go, Math.max(0, time - Date.now()))
  })
}
