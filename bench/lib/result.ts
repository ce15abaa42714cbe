import { median, sort } from './stats'
import type { Measurement, Suite } from './suite'

/** One system's runs, summed up: what `--json` prints, a line each. */
export interface Result {
  suite: string
  system: string
  unit: string
  median: number
  min: number
  max: number
  runs: number
  /** Whether in every run nothing was lost, doubled, early or uncommitted. */
  reconciled: boolean
  lost: number
  duplicated: number
  early: number
  problems: string[]
  /** This system's median divided by each other's. */
  ratios: Record<string, number>
  /** How the system fetched; empty where it says nothing. */
  fetch: string
  /** Further figures of the suite; one named `max` stands in for the largest value. */
  [figure: string]: unknown
}

/** Ours is named `retryline`, or `retryline:` and its mode. */
export const isOurs = (system: string): boolean => /^retryline(:|$)/.test(system)

const rounded = (value: number): number => Number(value.toPrecision(4))
const total = (values: number[]): number => values.reduce((sum, value) => sum + value, 0)

export function summarise(suite: Suite, measured: ReadonlyMap<string, Measurement[]>): Result[] {
  const atLeast = (value: number): number => Math.max(value, suite.least ?? 0)
  const medians = new Map([...measured].map(([system, runs]) => [system, median(runs.map(({ value }) => value))]))
  return [...measured].map(([system, runs]) => {
    const values = sort(runs.map(({ value }) => value))
    const counts = runs.map((run) => run.counts)
    const own = medians.get(system) ?? NaN
    const ratios = [...medians]
      .filter(([other]) => other !== system)
      .map(([other, value]) => [other, rounded(atLeast(own) / atLeast(value))])
    const names = new Set(runs.flatMap(({ figures }) => Object.keys(figures ?? {})))
    const figures = [...names].map((name) => {
      const each = runs.map((run) => run.figures?.[name] ?? NaN)
      // The worst of all runs is the worst; of any other figure the middle run speaks.
      return [name, rounded(name === 'max' || name === 'latest' ? Math.max(...each) : median(each))] as const
    })
    const lost = total(counts.map((count) => count.lost))
    const duplicated = total(counts.map((count) => count.duplicated))
    const early = total(counts.map((count) => count.early))
    const problems = counts.flatMap((count) => count.problems)
    return {
      suite: suite.name,
      system,
      unit: suite.unit,
      median: rounded(own),
      min: rounded(values[0] ?? NaN),
      max: rounded(values.at(-1) ?? NaN),
      runs: runs.length,
      reconciled: lost + duplicated + early + problems.length === 0,
      lost,
      duplicated,
      early,
      problems,
      ratios: Object.fromEntries(ratios) as Record<string, number>,
      fetch: runs.find(({ fetch }) => fetch)?.fetch ?? '',
      ...(Object.fromEntries(figures) as Record<string, number>),
    }
  })
}
