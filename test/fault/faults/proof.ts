/** A fault that did nothing proves nothing: each is seen in what the workers wrote down. */
import type { Line } from '../ledger'
import { until } from '../until'
import { NotSeen, type Undo, type World } from './fault'

const EVERY = 500
/** On a busy machine a member that joins again, or a broker that comes back, takes its time, ms. */
const PATIENCE = 60_000

/**
 * Resolves when a line was written since `from` that shows it; rejects with `NotSeen` when none is, or when `gone` says that
 * none can come any more.
 */
export async function seen(
  world: World,
  what: string,
  from: number,
  shows: (line: Line) => boolean,
  gone: () => boolean = () => false,
): Promise<void> {
  let next = 0
  let found = false
  const looked = (): boolean => {
    if (Date.now() < next) return false
    next = Date.now() + EVERY
    // In this order: what the process wrote before it ended is there when it has ended.
    const over = gone()
    found = world.lines().some((line) => line.at >= from && shows(line))
    return found || over
  }
  await until(what, looked, PATIENCE).catch((error: Error) => {
    throw new NotSeen(error.message)
  })
  if (!found) throw new NotSeen(`nobody is there any more in whom it could be seen: ${what}`)
  world.log(`seen: ${what}`)
}

/** The event that the note tells of, as text, where it is one of these. */
export function tells(line: Line, event: string, pattern = /./): boolean {
  return line.what === 'note' && line.text.startsWith(`{"type":"${event}"`) && pattern.test(line.text)
}

/** Takes steps that put what undoes them into `undos`: all of it is undone after the proof, or at once where a step fails. */
export async function forAWhile(steps: (undos: Undo[]) => Promise<void>, proof: () => Promise<void>): Promise<Undo> {
  const undos: Undo[] = []
  const undo = async (): Promise<void> => {
    const failed: unknown[] = []
    for (const one of undos) await one().catch((error: unknown) => failed.push(error))
    if (failed.length > 0) throw new AggregateError(failed, `not undone: ${failed.map(String).join('; ')}`)
  }
  await steps(undos).catch(async (error: unknown) => {
    await undo()
    throw error
  })
  return () => proof().finally(undo)
}
