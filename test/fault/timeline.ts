/** Carries the plan out, and writes down when each fault really began and was undone. */
import { chanceOf } from './chance'
import { NothingToDo, type Fault, type World } from './faults/fault'
import type { Group, Step } from './plan'

export interface Window {
  readonly fault: string
  readonly from: number
  /** When it was undone; Infinity while it lasts. */
  to: number
  readonly excuses: Fault['excuses']
  readonly recoveryMs: number
}

/** Records flow for so long before the first fault, ms. */
const WARM_UP = 1_500
const RECOVERY = 12_000

/**
 * Group by group, each when the one before is undone: on a slow machine, where a broker takes long to start, fewer groups come
 * in the time there is, though each fault of the plan comes once. Resolves when all faults are undone; a fault that cannot be
 * done or undone fails the run.
 */
export async function carryOut(
  world: World,
  groups: readonly Group[],
  windows: Window[],
  totalMs: number,
): Promise<void> {
  const startedAt = Date.now()
  const done = new Set<Fault>()
  await at(startedAt + WARM_UP)
  for (const { steps, breathMs } of groups) {
    const late = Date.now() - startedAt > totalMs
    if (late && steps.every(({ fault }) => done.has(fault))) continue
    for (const { fault } of steps) done.add(fault)
    const groupAt = Date.now()
    const all = steps.map((step) => at(groupAt + step.at).then(() => once(world, step, windows)))
    const failed = (await Promise.allSettled(all)).flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
    if (failed.length > 0) throw new AggregateError(failed, failed.map(String).join('; '))
    await at(Date.now() + breathMs)
  }
}

async function once(world: World, { fault, lastsMs, seed }: Step, windows: Window[]): Promise<void> {
  const { name, excuses, recoveryMs = RECOVERY } = fault
  const window: Window = { fault: name, from: Date.now(), to: Infinity, excuses, recoveryMs }
  windows.push(window)
  world.log(`${name} begins`)
  try {
    const undo = await fault.begin(world, chanceOf(seed))
    await at(Date.now() + lastsMs)
    await undo()
    world.log(`${name} is undone`)
  } catch (error) {
    if (!(error instanceof NothingToDo)) throw new Error(`${name}: ${String(error)}`, { cause: error })
    windows.splice(windows.indexOf(window), 1)
    world.log(`${name}: ${error.message}`)
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
