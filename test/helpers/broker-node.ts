import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Guard } from './broker-guard'

const run = promisify(execFile)
const QUIET = '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'
const PATIENCE = 20_000

export interface NodeSpec {
  id: number
  /** The cluster's temporary folder. */
  folder: string
  properties: string
  classpath: string
  clusterId: string
  jvm: readonly string[]
  guard: Guard
  /** More arguments of `kafka-storage format`: users that must be there before the first start. */
  format?: readonly string[]
}

/** One broker process: it can be stopped, killed and started again on the same ports and data. */
export interface BrokerNode {
  readonly pid: number | undefined
  format(): Promise<void>
  start(): void
  /** Rejects when the process ends by itself; never fulfils. */
  readonly died: Promise<never>
  /** A controlled shutdown: leadership moves first. */
  stop(): Promise<void>
  kill(): Promise<void>
  logs(): string
}

export function brokerNode(spec: NodeSpec): BrokerNode {
  const file = join(spec.folder, `node${spec.id}.properties`)
  const log = join(spec.folder, `node${spec.id}.log`)
  let child: ChildProcess | undefined
  let exited: Promise<void> = Promise.resolve()
  let died = new Promise<never>(() => undefined)

  const logs = (): string => {
    try {
      return readFileSync(log, 'utf8')
    } catch {
      return ''
    }
  }

  const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    const ending = child
    if (!ending) return
    ending.kill(signal)
    // A lone controller may wait for a quorum that will not come back.
    const impatient = setTimeout(() => ending.kill('SIGKILL'), PATIENCE)
    await exited
    clearTimeout(impatient)
  }

  return {
    get pid() {
      return child?.pid
    },
    get died() {
      return died
    },
    async format() {
      await mkdir(join(spec.folder, `data${spec.id}`), { recursive: true })
      await writeFile(file, spec.properties)
      const tool = ['-Xshare:auto', '-XX:TieredStopAtLevel=1', QUIET, '-cp', spec.classpath, 'kafka.tools.StorageTool']
      const more = spec.format ?? []
      await run('java', [...tool, 'format', '-t', spec.clusterId, '-c', file, ...more], { timeout: 60_000 })
    },
    start() {
      if (child) throw new Error(`node ${spec.id} runs already`)
      const out = openSync(log, 'a')
      const started = spawn('java', [...spec.jvm, QUIET, '-cp', spec.classpath, 'kafka.Kafka', file], {
        cwd: spec.folder,
        stdio: ['ignore', out, out],
        detached: true,
      })
      closeSync(out)
      child = started
      // Neither the broker nor the promise about it keeps a program alive that forgot to stop it; the guard sees to it.
      started.unref()
      const { pid } = started
      if (pid !== undefined) spec.guard.add(pid)
      exited = new Promise((resolve) => {
        const gone = (): void => {
          if (pid !== undefined) spec.guard.gone(pid)
          child = undefined
          resolve()
        }
        started.once('exit', gone)
        started.once('error', gone)
      })
      died = exited.then(() => {
        throw new Error(`broker node ${spec.id} ended:\n${logs().slice(-3000)}`)
      })
      died.catch(() => undefined)
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    logs,
  }
}
