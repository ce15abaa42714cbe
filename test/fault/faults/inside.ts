/** What a worker does to itself: the loop that is blocked, the handler that never settles, the clock that is set. */
import type { Chance } from '../chance'
import { NothingToDo, type Fault, type World } from './fault'
import { seen, tells } from './proof'

/** A worker that is up, and its process: another one in the slot has nothing of the fault. */
function victim({ crew, lines }: World, chance: Chance): { slot: string; pid: number } {
  const slots = crew.alive
  if (slots.length === 0) throw new NothingToDo('no worker is up')
  const slot = chance.pick(slots)
  const started = lines().filter(({ what, worker }) => what === 'started' && worker.startsWith(`${slot}.`))
  const pid = started.at(-1)?.pid
  if (pid === undefined) throw new NothingToDo(`${slot} has not started`)
  return { slot, pid }
}

/** Whether the process ended meanwhile, by another fault: then there is nothing to see, and nothing to undo. */
const ended = ({ lines, crew }: World, { slot, pid }: { slot: string; pid: number }): boolean => {
  const last = lines()
    .filter(({ worker }) => worker.startsWith(`${slot}.`))
    .at(-1)
  return !crew.alive.includes(slot) || last?.pid !== pid
}

function seenOf(
  world: World,
  one: { slot: string; pid: number },
  what: string,
  from: number,
  shows: Parameters<typeof seen>[3],
): Promise<void> {
  return seen(
    world,
    what,
    from,
    (line) => line.pid === one.pid && shows(line),
    () => ended(world, one),
  )
}

/** Longer than the session (4 s), shorter than the handlers' time-out (9 s). */
export const blockedLoop: Fault = {
  name: 'blocked-loop',
  about: 'the event loop of a worker stands still for longer than its session',
  resource: 'workers',
  lastsMs: [7_000, 8_000],
  excuses: { copies: true, stall: true },
  async begin(world, chance) {
    const one = victim(world, chance)
    const ms = chance.between(5_500, 7_000)
    const from = Date.now()
    world.log(`${one.slot} blocks for ${ms} ms`)
    world.crew.tell(one.slot, { do: 'block', ms })
    const lost = ({ what }: { what: string }): boolean => what === 'rebalanced' || what === 'crashed'
    return () => seenOf(world, one, `${one.slot} has lost its session`, from + ms - 500, lost)
  },
}

/** More of them than partitions, in the ordering modes that have several calls of one partition: every place is taken. */
export const hangingHandlers: Fault = {
  name: 'hanging-handlers',
  about: 'handlers of a worker never settle: after their time-out they are abandoned, and their places free',
  resource: 'workers',
  lastsMs: [10_500, 11_500],
  excuses: { copies: false, stall: true },
  async begin(world, chance) {
    const one = victim(world, chance)
    const from = Date.now()
    const calls = chance.between(2, 24)
    world.log(`${one.slot} hangs in ${calls} calls`)
    world.crew.tell(one.slot, { do: 'hang', calls })
    return async () => {
      if (world.crew.alive.includes(one.slot)) world.crew.tell(one.slot, { do: 'hang', calls: 0 })
      await seenOf(world, one, `${one.slot} abandoned a handler`, from, (line) => tells(line, 'abandoned'))
    }
  },
}

/** A session, three heartbeats of refused commits, and a join, generously, ms. */
const AFTERMATH = 12_000

/** kafkajs counts heartbeats and request time-outs by the wall clock, so either way the member may lose its session. */
export const clockJump: Fault = {
  name: 'clock-jump',
  about: 'the wall clock of a worker jumps by a minute or two, forwards or backwards, and later back',
  resource: 'workers',
  lastsMs: [3_000, 8_000],
  excuses: { copies: true, stall: true },
  recoveryMs: 30_000,
  async begin(world, chance) {
    const one = victim(world, chance)
    const ms = chance.pick([-1, 1]) * chance.between(62_000, 120_000)
    const from = Date.now()
    world.log(`the clock of ${one.slot} jumps by ${ms} ms`)
    world.crew.tell(one.slot, { do: 'skew', ms })
    return async () => {
      await seenOf(
        world,
        one,
        `${one.slot} works by another clock`,
        from,
        (line) => line.what === 'begin' && line.skew === ms,
      )
      if (world.crew.alive.includes(one.slot)) world.crew.tell(one.slot, { do: 'skew', ms: 0 })
      // That is a jump too: until the broker has missed the member, and it has a new client, its commits are refused.
      await new Promise<void>((resolve) => void setTimeout(resolve, AFTERMATH))
    }
  },
}
