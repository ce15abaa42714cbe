/** What somebody meets in the first hour: slips that are legal, and are told. */
import { describe, expect, it } from 'vitest'
import { RetryableError, silentLogger, type Logger } from '../../src/index'
import { minutes, shop } from './given'

/** A logger that keeps its lines from `warn` up. */
function listening(): { logger: Logger; lines: string[] } {
  const lines: string[] = []
  const keep = (line: string): void => void lines.push(line)
  return { logger: { ...silentLogger, warn: keep, error: keep }, lines }
}

describe('a newcomer', () => {
  it('is told at start of a wait that is perhaps meant in seconds', async () => {
    const { logger, lines } = listening()
    await shop({ schedule: [30, '1m'], logger, handler: () => undefined })
    expect(lines).toEqual(["schedule[0]: 30 is 30 ms; write '30s' if seconds are meant, and '30ms' if not"])
  })

  it('may say in words how long to wait', async () => {
    const attempts: number[] = []
    const { kafka } = await shop({
      handler: (_payload, { attempt }) => {
        attempts.push(minutes(kafka.clock.now()))
        if (attempt === 1) throw new RetryableError('closed for lunch', { after: '5m' })
      },
    })
    kafka.produce('orders', { value: '42' })
    await kafka.clock.advance('20m')
    // The first tier is too short for it.
    expect(attempts).toEqual([0, 10])
  })

  it('is told of words that are no duration, while the record is retried by the schedule', async () => {
    const { logger, lines } = listening()
    const attempts: number[] = []
    const { kafka } = await shop({
      logger,
      handler: (_payload, { attempt }) => {
        attempts.push(minutes(kafka.clock.now()))
        if (attempt === 1) throw new RetryableError('closed for lunch', { after: '5 minutes' })
      },
    })
    kafka.produce('orders', { value: '42' })
    await kafka.clock.advance('20m')
    expect(attempts).toEqual([0, 1])
    expect(lines).toEqual([
      expect.stringMatching(
        /^classify: .*a RetryableError: after is '5 minutes', which is no duration; give ms, or text/,
      ),
    ])
  })

  it('is told of a classifier that answers a promise, while the record is judged without it', async () => {
    const { logger, lines } = listening()
    const { kafka, header } = await shop({
      logger,
      classify: (() => Promise.resolve('retry')) as never,
      handler: () => {
        throw new TypeError('x is not a function')
      },
    })
    kafka.produce('orders', { value: '42' })
    await kafka.clock.settle()
    expect(header('orders.dlq', 'x-failure-reason')).toEqual(['non-retryable'])
    expect(lines).toContainEqual(expect.stringMatching(/^classify: .*answered a promise \(it must not be async\)/))
  })

  it('finds in the dead letter what to throw, where nothing was thrown', async () => {
    const { kafka, header } = await shop({ handler: () => Promise.reject() })
    kafka.produce('orders', { value: '42' })
    await kafka.clock.settle()
    expect(header('orders.dlq', 'x-error-class')).toEqual(['undefined'])
    expect(header('orders.dlq', 'x-error')).toEqual([
      'undefined was thrown, or a promise rejected without a reason; throw an Error, which says what has happened',
    ])
  })
})
