/** What a suite is: one question, asked of several systems on the same broker. */

export interface Counts {
  expected: number
  lost: number
  duplicated: number
  /** Handled before the time they were due. */
  early: number
  /** Anything else that does not add up, such as an offset that was not committed; empty when all is well. */
  problems: string[]
}

export interface Measurement {
  /** In the suite's unit. */
  value: number
  /** Further figures of the run, by name, such as p50 and p99. */
  figures?: Record<string, number>
  counts: Counts
  /** How the system fetched, see kafka.ts; added by child.ts. */
  fetch?: string
}

export interface RunContext {
  brokers: string[]
  small: boolean
  /** What `prepare` returned, by way of JSON. */
  prepared: unknown
  /** What `prepareRun` returned, by way of JSON. */
  own?: unknown
  /** Differs at each run: names of groups and topics are made with it. */
  id: string
}

export interface Suite {
  name: string
  unit: string
  better: 'higher' | 'lower'
  /** What cannot be told from nothing, in the suite's unit: a median below it counts as so much where ratios are made. */
  least?: number
  /** What a reader must know to judge the numbers, in a sentence or two. */
  method: string
  /** Ours first, named `retryline`, its mode behind a colon; the others are the peers that it is compared with. */
  systems: readonly [string, ...string[]]
  /** What leaves the machine mostly idle may run side by side: all systems, or the peers while ours runs alone. */
  sideBySide?: 'all' | 'peers'
  /** Peers that run in a JVM, with `--jvm`. */
  jvm?: readonly string[]
  /** Flags of Node for the processes of this suite. */
  flags?: readonly string[]
  /** Once for all systems and runs, in the parent: topics and records. */
  prepare?(context: Omit<RunContext, 'prepared'>): Promise<unknown>
  /** Before each run, in the parent: records that one run uses up. What it returns is `own` in the run. */
  prepareRun?(system: string, context: RunContext): Promise<unknown>
  /** One system, once, in a process of its own. */
  run(system: string, context: RunContext): Promise<Measurement>
}

/** All suites, by name; a new one is added here. */
export const suites: Record<string, () => Promise<{ suite: Suite }>> = {
  passthrough: () => import('../suites/passthrough'),
  io: () => import('../suites/io'),
  'retry-storm': () => import('../suites/retry-storm'),
  lateness: () => import('../suites/lateness'),
  poison: () => import('../suites/poison'),
  backlog: () => import('../suites/backlog'),
  'start-stop': () => import('../suites/start-stop'),
  idle: () => import('../suites/idle'),
  micro: () => import('../suites/micro'),
}

export async function loadSuite(name: string): Promise<Suite> {
  const load = suites[name]
  if (!load) throw new Error(`there is no suite ${name}; there are: ${Object.keys(suites).join(', ')}, and all`)
  return (await load()).suite
}
