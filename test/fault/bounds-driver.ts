/** Starts a process of bounds-worker.ts, asks it for its figures, and ends it. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { BoundsOptions, BoundsReport, Usage } from './bounds-worker'
import { until } from './until'

export interface Measured {
  readonly idle: Usage
  /** Starts the consumer proper; resolves with how long its start took, ms. */
  go(): Promise<number>
  /** After a collection. */
  report(): Promise<BoundsReport>
  /** Looks until things are as they should be, and then reports. */
  reportWhen(what: string, met: (report: BoundsReport) => boolean, withinMs?: number): Promise<BoundsReport>
  /** Resolves when the process has ended by itself, with how long the stop took, ms. */
  stop(): Promise<number>
  /** Ends it whatever it does. */
  end(): Promise<void>
}

interface Told {
  readonly what: string
  readonly ms?: number
  readonly finished?: boolean
  readonly report?: BoundsReport
  readonly idle?: Usage
}

export async function measured(options: BoundsOptions): Promise<Measured> {
  const path = fileURLToPath(new URL('bounds-worker.ts', import.meta.url))
  const child = fork(path, [JSON.stringify(options)], {
    execArgv: ['--expose-gc', '--import', 'tsx'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const ended = new Promise<number | null>((resolve) => void child.once('exit', resolve))

  function next(what: string): Promise<Told> {
    return new Promise((resolve, reject) => {
      const listen = (told: Told): void => {
        if (told.what !== what) return
        child.off('message', listen)
        resolve(told)
      }
      child.on('message', listen)
      void ended.then((code) => reject(new Error(`the process ended with ${code} before it said '${what}'`)))
    })
  }

  async function ask(word: string, what: string): Promise<Told> {
    const answer = next(what)
    child.send(word)
    return answer
  }

  const report = async (): Promise<BoundsReport> => (await ask('report', 'report')).report!
  const look = async (): Promise<BoundsReport> => (await ask('look', 'report')).report!
  const { idle } = await next('idle')
  return {
    idle: idle!,
    go: async () => (await ask('go', 'started')).ms!,
    report,
    async reportWhen(what, met, withinMs = 60_000) {
      let last!: BoundsReport
      await until(what, async () => met((last = await look())), withinMs).catch((error: Error) => {
        throw new Error(`${error.message}; last: ${JSON.stringify({ ...last, digests: undefined })}`)
      })
      return report()
    },
    async stop() {
      const { ms, finished } = await ask('stop', 'stopped')
      if (finished !== true) throw new Error('the stop has not finished')
      const code = await ended
      if (code !== 0) throw new Error(`the process ended with ${code}`)
      return ms!
    },
    async end() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await ended
    },
  }
}

export const MIB = 1024 * 1024

/** What is in use beyond what an idle consumer needs, at the most; bytes. */
export function overIdle({ idle, peak }: BoundsReport): number {
  return peak.live - idle.live
}

/** What the load costs beside records: code that is compiled as it is first used, requests, what is kept of each partition. */
export function base(partitions: number): number {
  return 8 * MIB + partitions * 8 * 1024
}

const inMiB = (bytes: number): number => Math.round((bytes / MIB) * 10) / 10

/** The figures, one line, for the log of the run. */
export function show(name: string, { idle, peak, now }: BoundsReport, more: Readonly<Record<string, unknown>>): void {
  const usage = ({ rss, live, heapUsed, arrayBuffers }: Usage): Record<string, number> => ({
    rss: inMiB(rss),
    live: inMiB(live),
    heapUsed: inMiB(heapUsed),
    arrayBuffers: inMiB(arrayBuffers),
  })
  const figures = JSON.stringify({ MiB: { idle: usage(idle), peak: usage(peak), now: usage(now) }, ...more })
  process.stdout.write(`${name}: ${figures}\n`)
}
