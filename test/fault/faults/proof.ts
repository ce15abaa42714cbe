/** A fault that did nothing proves nothing: each is seen in what the workers wrote down. */
import type { Line } from '../ledger'
import { until } from '../until'
import type { World } from './fault'

/** Looks every second: all that the workers ever wrote is read for it. */
const EVERY = 1_000
const PATIENCE = 30_000

/** Resolves when a line was written since `from` that shows it; rejects when none is. */
export async function seen(world: World, what: string, from: number, shows: (line: Line) => boolean): Promise<void> {
  let next = 0
  await until(
    what,
    () => {
      if (Date.now() < next) return false
      next = Date.now() + EVERY
      return world.lines().some((line) => line.at >= from && shows(line))
    },
    PATIENCE,
  )
  world.log(`seen: ${what}`)
}

/** The event that the note tells of, as text, where it is one of these. */
export function tells(line: Line, event: string, pattern = /./): boolean {
  return line.what === 'note' && line.text.startsWith(`{"type":"${event}"`) && pattern.test(line.text)
}
