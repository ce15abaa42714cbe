import { systemClock } from '../ports'
import type { Clock, Logger } from '../ports'
import type { Level } from './log-lines'

export interface ConsoleLoggerOptions {
  /** Lines below it are not written. Default `info`. */
  readonly level?: Level | 'silent'
  /** `text` for people, `json` for machines: one line each. Default `text`. */
  readonly format?: 'text' | 'json'
  /** Gets each line, without its line end. Default: standard error. */
  readonly write?: (line: string) => void
  readonly clock?: Clock
}

const ORDER = ['debug', 'info', 'warn', 'error', 'silent'] as const

/**
 * Writes one line for each message to standard error. The logger of a consumer that is given none, at level `info`:
 * starts, stops and rebalances, and every failure.
 */
export function consoleLogger(options: ConsoleLoggerOptions = {}): Logger {
  const { level = 'info', format = 'text', clock = systemClock } = options
  const write = options.write ?? ((line: string) => void process.stderr.write(`${line}\n`))
  const lowest = ORDER.indexOf(level)
  const line = format === 'json' ? jsonLine : textLine

  const at =
    (own: Level) =>
    (message: string, fields?: Record<string, unknown>): void => {
      if (ORDER.indexOf(own) >= lowest) write(line(new Date(clock.now()).toISOString(), own, message, fields))
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** What the user's logger throws, or rejects with, stays there: no timer, stop or handler of ours ends with it. */
export function containedLogger(logger: Logger): Logger {
  const at =
    (level: Level) =>
    (message: string, fields?: Record<string, unknown>): void => {
      try {
        const answer = logger[level](message, fields) as unknown
        // An async logger.
        if (answer instanceof Promise) answer.catch(() => undefined)
      } catch {
        // There is nobody left to tell.
      }
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

type Line = (time: string, level: Level, message: string, fields?: Record<string, unknown>) => string

const jsonLine: Line = (time, level, message, fields) => json({ time, level, logger: 'retryline', message, ...fields })

/** The message says what matters; of the fields only the group is added, so that a line stays readable. */
const textLine: Line = (time, level, message, fields) => {
  const group = typeof fields?.['groupId'] === 'string' ? ` ${fields['groupId']}` : ''
  return `${time} ${level.toUpperCase().padEnd(5)} retryline${group}: ${message.replaceAll(/\s*[\r\n]+\s*/g, ' ')}`
}

/** JSON that does not throw: the fields of a user's own message may hold anything. */
function json(value: Record<string, unknown>): string {
  try {
    return JSON.stringify(value, (_key, each: unknown) => (typeof each === 'bigint' ? each.toString() : each))
  } catch {
    return JSON.stringify({
      time: value['time'],
      level: value['level'],
      logger: 'retryline',
      message: value['message'],
    })
  }
}
