/** Carries the plan out, and writes down when each fault really began and was undone. */
import { chanceOf } from './chance'
import { NothingToDo, type Fault, type World } from './faults/fault'
import type { Step } from './plan'

export interface Window {
  readonly fault: string
  readonly from: number
  /** When it was undone; Infinity while it lasts. */
  to: number
  readonly excuses: Fault['excuses']
  readonly recoveryMs: number
}

const RECOVERY = 12_000

/** Resolves when all faults are undone. A fault that cannot be done or undone fails the run. */
export async function carryOut(world: World, steps: readonly Step[], windows: Window[]): Promise<void> {
  const startedAt = Date.now()
  const held = new Map<Fault['resource'], Promise<void>>()
  const all: Promise<void>[] = []
  for (const step of steps) {
    const before = held.get(step.fault.resource) ?? Promise.resolve()
    const done = at(startedAt + step.at)
      .then(() => before)
      .then(() => once(world, step, windows))
    held.set(
      step.fault.resource,
      done.catch(() => undefined),
    )
    all.push(done)
  }
  const failed = (await Promise.allSettled(all)).flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  if (failed.length > 0) throw new AggregateError(failed, failed.map(String).join('; '))
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
