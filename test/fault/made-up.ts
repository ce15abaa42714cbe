/** Made-up evidence, for the tests of the checker. */
import { check, type Evidence } from './check'
import type { Line } from './ledger'

export const MAIN = 't/0@'
export const TIER = 't.retry.300ms/0@'

interface CallOf {
  offset?: number
  attempt?: number
  worker?: string
  at: number
  ends?: number
  outcome?: 'ok' | 'failed'
  dueAt?: number
  source?: string
  /** Whether the copy of a failed one was acknowledged. */
  routed?: boolean
}

export function call({
  offset = 0,
  attempt = 1,
  worker = 'A',
  at,
  ends,
  outcome = 'ok',
  dueAt,
  source,
  routed = true,
}: CallOf): Line[] {
  const pid = worker.charCodeAt(0)
  const place = `${MAIN}${offset}`
  const same = { place, attempt, worker, pid, source: source ?? (attempt === 1 ? place : `${TIER}${offset}`) }
  const begin: Line = { what: 'begin', ...same, at, ...(dueAt !== undefined && { dueAt }) }
  if (ends === undefined) return [begin]
  const end: Line = { what: 'end', ...same, at: ends, outcome }
  if (outcome === 'ok' || !routed) return [begin, end]
  return [begin, end, { what: 'routed', source: same.source, worker, pid, at: ends }]
}

export const rebalance = (worker: string, at: number, removed = 1, tier = 'main'): Line[] => [
  { what: 'rebalanced', worker, pid: worker.charCodeAt(0), at, tier, removed },
]

export function found(lines: Line[][], more: Partial<Evidence> = {}): ReturnType<typeof check> {
  return check({ lines: lines.flat(), produced: [`${MAIN}0`], deadLetters: [], kills: new Map(), ...more })
}
