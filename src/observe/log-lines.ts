/**
 * The log line of each event. Waiting is never a warning (users read that as a bug), what mends itself is `info`, what
 * a person should look at is `warn`, what stops or loses something is `error`. Events without a row are too many to
 * log and tell of nothing that failed: they are for hooks.
 */
import type { At, EventOf, EventType } from './events'

export type Level = 'debug' | 'info' | 'warn' | 'error'

export interface LogLine<E extends EventType> {
  readonly level: Level | ((event: EventOf<E>) => Level)
  readonly text: (event: EventOf<E>) => string
  /** One event for each record: the first of a burst are logged at `level`, the others at `debug`. */
  readonly perRecord?: true
}

const at = (event: At): string => `${event.topic}/${event.partition}@${event.offset}`

/** A commit that a rebalance overtook is everyday; the offsets are committed by whoever owns them next. */
const OVERTAKEN = /rebalanc|generation|member/i

export const LOG_LINES: { readonly [E in EventType]?: LogLine<E> } = {
  retried: {
    level: 'info',
    perRecord: true,
    text: (e) => `failed, attempt ${e.attempt} follows on ${e.to}: ${at(e)} (${e.because}; ${e.error})`,
  },
  deadLettered: {
    level: 'warn',
    text: (e) =>
      `dead letter after ${attempts(e.attempt)}, ${e.reason}: ${at(e)} to ${e.to} (${e.because}; ${e.error})${advice(e.reason)}`,
  },
  skipped: { level: 'debug', perRecord: true, text: (e) => `skipped, ${e.why}: ${at(e)}` },
  envelope: {
    level: 'warn',
    perRecord: true,
    text: (e) => `headers that cannot be read on ${at(e)}: ${e.problems.join('; ')}`,
  },
  publishFailed: {
    level: 'error',
    text: (e) =>
      `publishing ${e.records} records to ${e.topics.join(', ')} failed, try ${e.tries}, again in ${e.retryInMs} ms: ${e.error}`,
  },
  commitFailed: {
    level: (e) => (OVERTAKEN.test(e.error) && !e.error.startsWith('ForbiddenError') ? 'info' : 'warn'),
    text: (e) => `commit of ${e.partitions} partitions (${e.tier}) was refused, offsets are chosen anew: ${e.error}`,
  },
  fenced: {
    level: 'warn',
    text: (e) =>
      `a transaction of ${e.topic}/${e.partition} (${e.tier}) was refused: somebody else has taken over, or it took too long`,
  },
  metadata: {
    level: 'warn',
    text: (e) =>
      `the commit of ${at(e)} carries ${e.length} characters that are not ours: what was done beyond it is done again`,
  },
  unclean: {
    level: 'warn',
    text: (e) =>
      `whoever had ${e.topic}/${e.partition} before is gone without a word: ${e.records} records from ${e.offset} on are handled one at a time`,
  },
  crashLoop: {
    level: 'error',
    text: (e) => `${e.deaths} processes died while ${at(e)} was at work: it becomes a dead letter, unhandled`,
  },
  rebalanced: {
    level: 'info',
    text: (e) =>
      `rebalanced (${e.tier}): ${e.assigned} partitions, ${e.added} new, ${e.removed} gone, ${e.dropped} waiting records dropped`,
  },
  reopened: {
    level: 'warn',
    text: (e) => `${e.topic}/${e.partition} was somebody else's meanwhile: begun anew at ${e.broker}, was at ${e.ours}`,
  },
  gone: {
    level: 'error',
    text: (e) => `records of ${e.topic}/${e.partition} were deleted before they were read: ${e.from} up to ${e.to}`,
  },
  unreadable: {
    level: 'error',
    text: (e) =>
      `a batch cannot be read, its partition waits, uncommitted, looked at again in ${e.againInMs} ms: ${at(e)} (${e.error})`,
  },
  readable: { level: 'info', text: (e) => `a batch can be read after ${e.forMs} ms, its partition goes on: ${at(e)}` },
  late: {
    level: 'warn',
    perRecord: true,
    text: (e) => `a handler finished after its partition had moved on, its result is not used: ${at(e)}`,
  },
  abandoned: {
    level: 'error',
    text: (e) =>
      `a handler does not settle and is left behind (${e.during}, ${e.runningMs} ms), it may still have effects: ${at(e)}`,
  },
  crashed: {
    level: 'error',
    text: (e) => `the consumer of ${e.tier} crashed, ${e.restarting ? 'restarting' : 'not restarting'}: ${e.error}`,
  },
  restarted: { level: 'info', text: (e) => `the consumer of ${e.tier} is back` },
  started: { level: 'info', text: (e) => `started in ${e.durationMs} ms: ${e.groups.join(', ')}` },
  stopped: {
    level: (e) => (e.abandoned.length > 0 ? 'warn' : 'info'),
    text: (e) =>
      e.abandoned.length > 0
        ? `stopped in ${e.durationMs} ms, left uncommitted: ${e.abandoned.map(at).join(', ')}`
        : `stopped in ${e.durationMs} ms`,
  },
  held: {
    level: 'warn',
    text: (e) => `'${e.dependency}' is down, records that need it wait, uncommitted: ${e.because}`,
  },
  released: {
    level: 'info',
    text: (e) =>
      e.lanes > 0
        ? `'${e.dependency}' is back after ${e.heldMs} ms: ${e.lanes} partitions go on`
        : `no partition here waits for '${e.dependency}' any more, after ${e.heldMs} ms: they went to others`,
  },
  halted: {
    level: 'error',
    text: (e) =>
      `nothing is handled any more: ${e.deadLetters} of ${e.of} records became dead letters within ${e.withinMs} ms ` +
      '(deadLetterLimit); mend the cause, then restart or call resume()',
  },
  paused: { level: (e) => (e.by === 'user' ? 'info' : 'debug'), text: (e) => `paused by ${e.by}${where(e)}` },
  resumed: { level: (e) => (e.by === 'user' ? 'info' : 'debug'), text: (e) => `resumed by ${e.by}${where(e)}` },
  problem: { level: 'warn', text: (e) => `${e.where}: ${e.error}` },
}

/** Who meets a retry library for the first time expects a plain error to be retried. */
function advice(reason: string): string {
  if (reason !== 'unclassified') return ''
  return "; to have it tried again throw a RetryableError, give a rule in classify, or set unknownErrors: 'retry'"
}

function attempts(made: number): string {
  return made === 1 ? '1 attempt' : `${made} attempts`
}

function where(event: { topic?: string; partition?: number }): string {
  if (event.topic === undefined) return ''
  return event.partition === undefined ? `: ${event.topic}` : `: ${event.topic}/${event.partition}`
}
