/**
 * Runs a scenario again and again, each time with another interleaving: how long every request and answer is under way,
 * in which order handlers end, and what faults the scenario injects all come from one number. The first run that breaks
 * something is told again with as few of its faults as still break it.
 */
import { RetrylineError } from '../errors'
import { systemClock } from '../ports'
import { createManualClock } from './clock'
import { createFakeKafkaOn, type FakeKafkaOptions } from './create-fake-kafka'
import { createExploreFaults } from './explore-faults'
import { createPace } from './explore-pace'
import { seededRandom } from './explore-random'
import { ExploreError, Trace } from './explore-trace'
import { insideOf } from './inside'
import { createWorld, RunIsOver, type Broken, type World } from './explore-world'

export interface ExploreOptions {
  /** Throws, or calls `world.broken`, where something that should hold does not. No real I/O and no chance but the world's. */
  scenario: (world: World) => Promise<unknown>
  /** How many seeds, from `from` on. 100 by default. */
  seeds?: number
  /** The first seed. 1 by default. */
  from?: number
  /** This one alone, told as it is. */
  seed?: number
  /** With `seed`: the numbers of faults to leave out. */
  without?: readonly number[]
  /** Topics and the like, as for `createFakeKafka`. Time starts on 2026-01-01 unless told. */
  kafka?: FakeKafkaOptions
  /** Whether to look for a run with fewer faults once one is broken. True by default. */
  shrink?: boolean
  /** How many events of the broken run are told. 40 by default. */
  tail?: number
  /** Where the broken seed is printed. `console.error` by default. */
  print?: (text: string) => void
  /** Real ms that one run may take before it counts as one that never ends. 20,000 by default. */
  patience?: number
}

export interface Explored {
  /** How many seeds were tried. */
  readonly seeds: number
  readonly faults: number
  readonly events: number
  /** With `seed`: every line of that run. */
  readonly trace: readonly string[]
}

interface Run {
  readonly broken: Broken | undefined
  readonly trace: Trace
  readonly faults: number
}

/** 2026-01-01T00:00:00Z. */
const STARTS_AT = 1_767_225_600_000
const PATIENCE = 20_000
/** The most runs that looking for fewer faults may take. */
const SHRINK_RUNS = 60

/** Throws an ExploreError (RETRYLINE_TESTING) that carries the first seed which breaks the scenario. */
export async function explore(options: ExploreOptions): Promise<Explored> {
  check(options)
  const { seed, from = 1, seeds = 100, without = [], shrink = true } = options
  const [first, count] = seed === undefined ? [from, seeds] : [seed, 1]
  const sum = { faults: 0, events: 0 }
  let last: Trace | undefined
  for (let at = first; at < first + count; at++) {
    const run = await runOnce(options, at, without)
    sum.faults += run.faults
    sum.events += run.trace.length
    last = run.trace
    if (run.broken === undefined) continue
    const least =
      shrink && seed === undefined && run.broken.endless !== true
        ? await withFewerFaults(options, at, run)
        : { run, without }
    throw told(options, at, least)
  }
  return { seeds: count, ...sum, trace: seed === undefined ? [] : (last?.all() ?? []) }
}

async function runOnce(options: ExploreOptions, seed: number, without: readonly number[]): Promise<Run> {
  const startAt = options.kafka?.startAt ?? STARTS_AT
  const clock = createManualClock({ ...options.kafka, startAt })
  const kafka = createFakeKafkaOn(clock, options.kafka ?? {}, seededRandom(seed, 2))
  const { broker } = insideOf(kafka, 'explore()')
  const trace = new Trace(() => clock.monotonic())
  const pace = createPace({ seed, clock, trace })
  const random = seededRandom(seed, 3)
  const injecting = { random: seededRandom(seed, 4), clock, broker, controls: kafka.broker, trace }
  const faults = createExploreFaults({ ...injecting, without: new Set(without) })
  const { world, broken } = createWorld({ seed, kafka, broker, clock, random, trace, faults })
  broker.pace = pace.pace

  const scenario = async (): Promise<Broken | undefined> => {
    try {
      await options.scenario(world)
      return undefined
    } catch (error) {
      if (error instanceof RunIsOver) return broken
      return { promise: undefined, text: error instanceof Error ? error.message : String(error), cause: error }
    }
  }
  const patience = options.patience ?? PATIENCE
  let timer: { cancel(): void } | undefined
  const endless = new Promise<Broken>((resolve) => {
    const text = `the run does not end within ${patience} real ms: its scenario waits for something that never comes`
    timer = systemClock.after(patience, () => resolve({ promise: 'progress', text, endless: true }))
  })
  const outcome = await Promise.race([broken, scenario(), endless])
  timer?.cancel()
  pace.stop()
  return { broken: outcome, trace, faults: faults.injected() }
}

/** Leaves out faults, many at once and then one by one, as long as the same promise is still broken. */
async function withFewerFaults(options: ExploreOptions, seed: number, whole: Run): Promise<Least> {
  let least: Least = { run: whole, without: [] }
  let runs = 0
  const kept = new Set(Array.from({ length: whole.faults }, (_, number) => number))
  for (
    let size = Math.ceil(kept.size / 2);
    size >= 1 && runs < SHRINK_RUNS;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    const all = [...kept].reverse()
    for (let at = 0; at < all.length && runs < SHRINK_RUNS; at += size) {
      const some = all.slice(at, at + size)
      const without = [...least.without, ...some].sort((a, b) => a - b)
      runs++
      const run = await runOnce(options, seed, without)
      if (run.broken === undefined || run.broken.promise !== whole.broken?.promise) continue
      least = { run, without: without.filter((number) => number < run.faults) }
      for (const number of some) kept.delete(number)
    }
  }
  return least
}

interface Least {
  readonly run: Run
  readonly without: readonly number[]
}

function told(options: ExploreOptions, seed: number, { run, without }: Least): ExploreError {
  const { tail = 40, print = console.error } = options // eslint-disable-line no-console -- it is to be seen in any runner
  const { promise, text = '', cause } = run.broken ?? {}
  const error = new ExploreError({ seed, promise, text, without, trace: run.trace, tail, cause })
  print(error.message)
  return error
}

/** For JavaScript: what the types would have said. */
function check(options: ExploreOptions): void {
  const problem =
    typeof (options as Partial<ExploreOptions> | undefined)?.scenario !== 'function'
      ? 'scenario is missing: give a function that gets a world'
      : [options.seeds, options.from, options.seed].find((value) => value !== undefined && !isCount(value)) !==
          undefined
        ? 'seeds, from and seed are whole numbers, from 0 on'
        : undefined
  if (problem !== undefined) throw new RetrylineError('RETRYLINE_TESTING', `explore(): ${problem}`)
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0
