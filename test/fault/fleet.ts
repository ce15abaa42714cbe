/** Worker processes: started, asked to stop, killed; none is left behind by `end()`. */
import { fork, type ChildProcess } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { followLedger, type Line } from './ledger'
import type { Command } from './commands'
import type { WorkerOptions } from './worker'

/** How long a process may take to end after SIGTERM, ms: its `shutdownTimeout`, 6 s that a stop may take beyond it, a busy machine. */
const END_WITHIN = 30_000

export interface Worker {
  readonly name: string
  readonly pid: number
  /** Asks it to stop; resolves when the process has ended, with how long that took in ms. */
  stop(): Promise<number>
  /** SIGKILL; resolves with the time of death. */
  kill(): Promise<number>
  tell(command: Command): void
  readonly ended: Promise<Ending>
}

export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** What it wrote to standard error, where that is kept. */
  readonly said: string
}

export interface Fleet {
  start(name: string): Promise<Worker>
  /** What all workers, living and dead, have written so far. */
  lines(): Line[]
  /** What one worker has written so far; nothing where it is not there yet. */
  linesOf(name: string): readonly Line[]
  /** Whether a worker wrote down that its consumer has stopped. */
  hasStopped(name: string): boolean
  /** Times at which workers died without a stop, by name. */
  readonly kills: ReadonlyMap<string, number>
  /** Kills what is left, and removes the ledgers unless they lie in a folder of the caller's. */
  end(): Promise<void>
}

/** `into`: a folder of the caller's for the ledgers, which then stay. */
export function createFleet(options: Omit<WorkerOptions, 'name' | 'ledger'>, into?: string): Fleet {
  const folder = into ?? mkdtempSync(join(tmpdir(), 'retryline-fault-'))
  const ledgers = new Map<string, () => readonly Line[]>()
  const alive = new Map<ChildProcess, Promise<Ending>>()
  const kills = new Map<string, number>()

  async function start(name: string): Promise<Worker> {
    if (ledgers.has(name)) throw new Error(`there is a worker ${name} already: a ledger is one process's`)
    const ledger = join(folder, `${name}.jsonl`)
    ledgers.set(name, followLedger(ledger))
    const argument = JSON.stringify({ ...options, name, ledger } satisfies WorkerOptions)
    const path = fileURLToPath(new URL('worker.ts', import.meta.url))
    // Beside the ledgers where these stay: a start that fails while no broker answers is no news.
    const errors = into === undefined ? undefined : openSync(join(folder, `${name}.err`), 'a')
    const child = fork(path, [argument], {
      execArgv: ['--import', 'tsx', '--import', new URL('wall-clock.preload.ts', import.meta.url).href],
      stdio: ['ignore', errors ?? 'inherit', errors ?? 'inherit', 'ipc'],
    })
    if (errors !== undefined) closeSync(errors)
    const ended = new Promise<Ending>((resolve) => {
      child.once('exit', (code, signal) => {
        alive.delete(child)
        if (code !== 0) kills.set(name, Date.now())
        const said = into === undefined ? '' : readFileSync(join(folder, `${name}.err`), 'utf8')
        resolve({ code, signal, said })
      })
    })
    alive.set(child, ended)
    await new Promise<void>((resolve, reject) => {
      child.once('message', () => resolve())
      void ended.then(({ code, signal }) =>
        reject(new Error(`worker ${name} ended with ${signal ?? code} before it had started`)),
      )
    })
    return {
      name,
      pid: child.pid ?? -1,
      async stop() {
        const askedAt = Date.now()
        child.kill('SIGTERM')
        let impatient = (): void => undefined
        const late = new Promise<never>((_, reject) => {
          const timer = setTimeout(() => reject(new Error(`worker ${name} does not end after its stop`)), END_WITHIN)
          impatient = () => clearTimeout(timer)
        })
        try {
          const { code, signal } = await Promise.race([ended, late])
          if (code !== 0) throw new Error(`worker ${name} ended with ${signal ?? code}`)
        } finally {
          impatient()
        }
        return Date.now() - askedAt
      },
      async kill() {
        child.kill('SIGKILL')
        await ended
        return kills.get(name) ?? Date.now()
      },
      tell: (command) => void child.send(command),
      ended,
    }
  }

  const linesOf = (name: string): readonly Line[] => ledgers.get(name)?.() ?? []

  return {
    start,
    lines: () => [...ledgers.values()].flatMap((read) => read()),
    linesOf,
    hasStopped: (name) => linesOf(name).some(({ what }) => what === 'stopped'),
    kills,
    async end() {
      const dying = [...alive]
      for (const [child] of dying) child.kill('SIGKILL')
      await Promise.all(dying.map(([, ended]) => ended))
      if (into === undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}
