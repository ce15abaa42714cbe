/**
 * Worker processes under a supervisor, as a platform runs them: a slot whose process has ended is filled again, under a new
 * name (`w1.1`, `w1.2`, …), until it is told to stay empty.
 *
 * State of a slot:  starting -> up -> ended -> starting …      left: it stays empty
 *   - a process that ends before it has started (no broker answers, say) is started again after a wait;
 *   - a death that nobody ordered is written down in `unexpected`: the run has failed then.
 * Must never happen: two processes in one slot; a process left behind by `end()`.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from './commands'
import type { Fleet, Worker } from './fleet'
import { until } from './until'

const KAFKAJS_DEATH = /TypeError[^]*at Decoder\.readInt32[^]*at Connection\.processData/
const RESTART_AFTER = 300
const FAILED_START_AFTER = 1_000

export interface Crew {
  /** Slots whose worker has started and was not told to end. */
  readonly alive: readonly string[]
  /** Deaths that no fault ordered, stops that took too long, ends with a wrong code. */
  readonly unexpected: readonly string[]
  /**
   * Deaths by a fault of kafkajs's own: it keeps the half of a response that was cut, reads the next connection's bytes behind
   * it, and where these make up a size below nought throws from the socket's listener, where nobody can catch it.
   */
  readonly kafkajsDeaths: number
  /**
   * Processes that stood although their consumer had stopped: kafkajs forgets a broker whose connection was closed without
   * closing its other connections (`removeBroker`), and nobody can reach these any more. They are killed.
   */
  readonly lingering: number
  /** Starts that failed: for the log. */
  readonly failedStarts: number
  /** SIGKILL; the slot is filled again. */
  kill(slot: string): Promise<void>
  /** SIGTERM, and the wait for its end; the slot is filled again, as in a deploy. */
  restart(slot: string): Promise<void>
  /** One more member, in a slot of its own. Resolves with its name once it has started. */
  join(): Promise<string>
  /** SIGTERM (default) or SIGKILL, and the wait for its end; the slot stays empty. */
  leave(slot: string, signal?: 'SIGTERM' | 'SIGKILL'): Promise<void>
  /** Any other signal (SIGSTOP, SIGCONT) to the process that is there. */
  signal(slot: string, signal: NodeJS.Signals): void
  tell(slot: string, command: Command): void
  /** From now on this process may end as it likes: a fault makes it. */
  mayDie(slot: string): void
  /** Waits until there is a started worker in the slot. */
  untilUp(slot: string): Promise<void>
  /** Stops all, as a platform does; none is started again. */
  stopAll(): Promise<void>
  end(): Promise<void>
}

interface Slot {
  readonly name: string
  worker: Worker | undefined
  count: number
  leaving: boolean
  /** Whoever ends the process says so first. */
  ordered: boolean
}

export function createCrew(fleet: Fleet, log: (text: string) => void): Crew {
  const slots = new Map<string, Slot>()
  const unexpected: string[] = []
  const timers = new Set<NodeJS.Timeout>()
  let failedStarts = 0
  let kafkajsDeaths = 0
  let lingering = 0
  let ended = false
  let joined = 0

  const later = (ms: number, step: () => void): void => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      step()
    }, ms)
    timers.add(timer)
  }

  const fill = async (slot: Slot): Promise<void> => {
    if (ended || slot.leaving) return
    const name = `${slot.name}.${++slot.count}`
    slot.ordered = false
    let worker: Worker
    try {
      worker = await fleet.start(name)
    } catch (error) {
      failedStarts++
      log(`${name} did not start: ${String(error)}`)
      return later(FAILED_START_AFTER, () => void fill(slot))
    }
    if (ended) return
    slot.worker = worker
    log(`${name} is up (${worker.pid})`)
    void worker.ended.then(({ code, signal, said }) => {
      slot.worker = undefined
      const byKafkajs = KAFKAJS_DEATH.test(said)
      if (byKafkajs) kafkajsDeaths++
      if (byKafkajs) log(`${name} died of kafkajs`)
      else if (!slot.ordered) unexpected.push(`${name} ended by itself (${signal ?? `code ${code}`})`)
      if (!slot.leaving) later(RESTART_AFTER, () => void fill(slot))
    })
    if (slot.leaving) await stop(slot)
  }

  const stop = async (slot: Slot): Promise<void> => {
    const { worker } = slot
    if (!worker || slot.ordered) return
    slot.ordered = true
    await worker.stop().then(
      (ms) => log(`${worker.name} stopped in ${ms} ms`),
      async (error: Error) => {
        if (fleet.hasStopped(worker.name)) lingering++
        else unexpected.push(error.message)
        log(error.message)
        await worker.kill()
      },
    )
  }

  const slotOf = (name: string): Slot => {
    const slot = slots.get(name)
    if (!slot) throw new Error(`there is no slot ${name}: there are ${[...slots.keys()].join(', ')}`)
    return slot
  }
  const workerOf = (name: string): Worker => {
    const { worker } = slotOf(name)
    if (!worker) throw new Error(`slot ${name} is empty just now`)
    return worker
  }
  const untilUp = (name: string): Promise<void> =>
    until(`${name} is up`, () => ended || slotOf(name).worker !== undefined || slotOf(name).leaving, 120_000)

  return {
    get alive() {
      return [...slots.values()]
        .filter(({ worker, ordered }) => worker !== undefined && !ordered)
        .map(({ name }) => name)
    },
    unexpected,
    get kafkajsDeaths() {
      return kafkajsDeaths
    },
    get lingering() {
      return lingering
    },
    get failedStarts() {
      return failedStarts
    },
    async kill(name) {
      const worker = workerOf(name)
      slotOf(name).ordered = true
      await worker.kill()
    },
    restart: (name) => stop(slotOf(name)),
    async join() {
      const name = `w${++joined}`
      const slot: Slot = { name, worker: undefined, count: 0, leaving: false, ordered: false }
      slots.set(name, slot)
      await fill(slot)
      await untilUp(name)
      return name
    },
    async leave(name, signal = 'SIGTERM') {
      const slot = slotOf(name)
      slot.leaving = true
      if (signal === 'SIGTERM' || slot.ordered) return stop(slot)
      slot.ordered = true
      await slot.worker?.kill()
    },
    signal: (name, signal) => void process.kill(workerOf(name).pid, signal),
    tell: (name, command) => workerOf(name).tell(command),
    mayDie(name) {
      slotOf(name).ordered = true
    },
    untilUp,
    async stopAll() {
      for (const slot of slots.values()) slot.leaving = true
      await Promise.all([...slots.values()].map(stop))
      await until('all workers have ended', () => [...slots.values()].every(({ worker }) => worker === undefined))
    },
    async end() {
      ended = true
      for (const timer of timers) clearTimeout(timer)
      for (const slot of slots.values()) slot.ordered = slot.leaving = true
      await fleet.end()
    },
  }
}

/** A log of the run, on a file and (where wished) on standard error. */
export function openLog(folder: string, loud: boolean): { log(text: string): void; close(): void } {
  const startedAt = Date.now()
  const file = openSync(join(folder, 'run.log'), 'a')
  return {
    log(text) {
      const line = `${((Date.now() - startedAt) / 1000).toFixed(1).padStart(7)}  ${Date.now()}  ${text}\n`
      writeSync(file, line)
      if (loud) process.stderr.write(line)
    },
    close: () => closeSync(file),
  }
}
