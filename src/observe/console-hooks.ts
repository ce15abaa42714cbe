/**
 * Lines for a terminal: a summary of each group every so often, and at once what a person should know. A summary is
 * written when an event comes in after its time is up: without a timer, nothing keeps a process alive.
 */
import { systemClock } from '../ports'
import type { Clock } from '../ports'
import { formatDuration, parseDuration } from '../topology'
import type { EventType, MetricHooks, RetrylineEvent } from './events'
import { LOG_LINES } from './log-lines'

const URGENT: ReadonlySet<string> = new Set<EventType>([
  'deadLettered',
  'publishFailed',
  'crashed',
  'abandoned',
  'gone',
  'unreadable',
  'readable',
  'crashLoop',
  'held',
  'released',
  'halted',
])

export interface ConsoleHooksOptions {
  /** Time between summaries, as text with a unit or in ms. Default `10s`. */
  readonly every?: string | number
  /** Gets each line, without its line end. Default: standard output. */
  readonly write?: (line: string) => void
  readonly clock?: Clock
}

interface Tally {
  since: number
  ok: number
  failed: number
  retried: number
  deadLettered: number
  late: number
  latenessSum: number
  latenessMax: number
}

/** Give each process its own; several consumers may share one, and each group gets its own summary. */
export function consoleHooks(options: ConsoleHooksOptions = {}): MetricHooks {
  const { clock = systemClock } = options
  const every = parseDuration(options.every ?? '10s', 'consoleHooks.every')
  if (!every.ok) throw new TypeError(every.problem)
  const write = options.write ?? ((line: string) => void process.stdout.write(`${line}\n`))
  const tallies = new Map<string, Tally>()

  const summarise = (groupId: string, tally: Tally): void => {
    const elapsed = clock.monotonic() - tally.since
    if (tally.ok + tally.failed + tally.retried + tally.deadLettered > 0) write(summary(groupId, tally, elapsed))
    tallies.delete(groupId)
  }

  return {
    all(event) {
      const tally = tallies.get(event.groupId) ?? fresh(clock.monotonic())
      tallies.set(event.groupId, tally)
      count(tally, event)
      const urgent = urgentLine(event)
      if (urgent !== undefined) write(`retryline ${event.groupId}: ${urgent}`)
      if (event.type === 'stopped' || clock.monotonic() - tally.since >= every.ms) summarise(event.groupId, tally)
    },
  }
}

function fresh(since: number): Tally {
  return { since, ok: 0, failed: 0, retried: 0, deadLettered: 0, late: 0, latenessSum: 0, latenessMax: 0 }
}

function count(tally: Tally, event: RetrylineEvent): void {
  if (event.type === 'retried') tally.retried++
  if (event.type === 'deadLettered') tally.deadLettered++
  if (event.type !== 'attempt') return
  if (event.outcome === 'ok') tally.ok++
  else tally.failed++
  if (event.latenessMs !== undefined) {
    tally.late++
    tally.latenessSum += event.latenessMs
    tally.latenessMax = Math.max(tally.latenessMax, event.latenessMs)
  }
}

function urgentLine(event: RetrylineEvent): string | undefined {
  return URGENT.has(event.type) ? LOG_LINES[event.type]?.text(event as never) : undefined
}

function summary(groupId: string, tally: Tally, elapsedMs: number): string {
  const seconds = Math.max(elapsedMs / 1000, 0.001)
  const rate = (tally.ok / seconds).toFixed(tally.ok / seconds < 10 ? 1 : 0)
  const parts = [`${tally.ok} handled (${rate}/s)`, `${tally.failed} failed`, `${tally.retried} to retry`]
  parts.push(`${tally.deadLettered} dead letters`)
  if (tally.late > 0) {
    const mean = Math.round(tally.latenessSum / tally.late)
    parts.push(`retries late by ${mean} ms on average, ${Math.round(tally.latenessMax)} ms at most`)
  }
  return `retryline ${groupId}, last ${formatDuration(Math.max(1000, Math.round(elapsedMs / 1000) * 1000))}: ${parts.join(', ')}`
}
