import { expect, test } from 'vitest'
import { consoleLogger } from '../../../src/observe'
import type { ConsoleLoggerOptions } from '../../../src/observe'
import { systemClock } from '../../../src/ports'
import type { Logger } from '../../../src/ports'

function make(options: ConsoleLoggerOptions = {}): { logger: Logger; lines: string[] } {
  const lines: string[] = []
  const clock = { ...systemClock, now: () => 0 }
  return { lines, logger: consoleLogger({ ...options, clock, write: (line) => void lines.push(line) }) }
}

function logAll(logger: Logger): void {
  logger.debug('d')
  logger.info('i', { groupId: 'billing', n: 1 })
  logger.warn('w\n  second line')
  logger.error('e')
}

test('text from info up, one line each', () => {
  const { logger, lines } = make()
  logAll(logger)
  expect(lines).toEqual([
    '1970-01-01T00:00:00.000Z INFO  retryline billing: i',
    '1970-01-01T00:00:00.000Z WARN  retryline: w second line',
    '1970-01-01T00:00:00.000Z ERROR retryline: e',
  ])
})

test.each([
  ['debug', 4],
  ['warn', 2],
  ['error', 1],
  ['silent', 0],
] as const)('level %s', (level, count) => {
  const { logger, lines } = make({ level })
  logAll(logger)
  expect(lines).toHaveLength(count)
})

test('json, whatever the fields hold', () => {
  const { logger, lines } = make({ format: 'json' })
  logger.info('hello', { groupId: 'billing', offset: 12n })
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  logger.warn('odd', cyclic)
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    {
      time: '1970-01-01T00:00:00.000Z',
      level: 'info',
      logger: 'retryline',
      message: 'hello',
      groupId: 'billing',
      offset: '12',
    },
    { time: '1970-01-01T00:00:00.000Z', level: 'warn', logger: 'retryline', message: 'odd' },
  ])
})
