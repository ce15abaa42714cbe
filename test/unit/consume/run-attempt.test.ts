import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { createClassifier } from '../../../src/classify'
import type { Attempt } from '../../../src/consume/attempt'
import type { Lane, Outcome } from '../../../src/consume/lane'
import { createAttemptRunner, GRACE_MS } from '../../../src/consume/run-attempt'
import { NonRetryableError, RetryableError, RetrylineError } from '../../../src/errors'
import { silentLogger } from '../../../src/ports'
import type { Handler, HandlerContext } from '../../../src/record'
import { createTestClock } from '../../helpers/test-clock'
import { entry, hold, lane, message, recorder } from './given'

const TIMEOUT = 30_000

interface Given {
  immediate?: { tries: number; delayMs: number }
}

function setUp(handler: Handler, { immediate = { tries: 0, delayMs: 0 } }: Given = {}) {
  const clock = createTestClock()
  const { emitter, of, events } = recorder(clock)
  const ended: { attempt: Attempt; outcome: Outcome }[] = []
  let stopping = false
  const pauses: number[] = []
  const runner = createAttemptRunner({
    handler,
    handlerTimeoutMs: TIMEOUT,
    immediate,
    maxAttempts: 4,
    classifier: createClassifier({ unknownErrors: 'dead-letter', now: () => clock.now() }),
    clock,
    emitter,
    logger: silentLogger,
    frameName: 'retryline-handler-1',
    ended: (attempt, outcome) => ended.push({ attempt, outcome }),
    succeeded: (attempt) => void ended.push({ attempt, outcome: { kind: 'ok' } }),
    now: () => clock.monotonic(),
    pauseChanged: (lane) => pauses.push(lane.handlerPauses),
    stopping: () => stopping,
  })
  const where = lane(2)
  where.open(0n, undefined)
  return {
    clock,
    runner,
    ended,
    of,
    events,
    pauses,
    lane: where,
    start: (offset = 7, on: Lane = where, fields = {}) => runner.start(on, entry(offset, fields), undefined),
    kinds: () => ended.map(({ outcome }) => outcome.kind),
    stop: () => void (stopping = true),
  }
}

describe('how a handler ends', () => {
  test('resolved, returned, or a sync value: ok, and once', async () => {
    for (const handler of [
      async () => undefined,
      () => undefined,
      () => 42,
      () => ({ then: (ok: () => void) => ok() }),
    ]) {
      const { clock, start, kinds, of, runner } = setUp(handler)
      start()
      await clock.settle()
      expect(kinds()).toEqual(['ok'])
      expect(runner.watchdog.running).toEqual([])
      expect(of('attempt')).toMatchObject([{ outcome: 'ok', partition: 2, offset: '7', attempt: 1, tryInAttempt: 1 }])
    }
  })

  const cyclic = new Error('outer')
  ;(cyclic as { cause?: unknown }).cause = new Error('inner', { cause: cyclic })
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error('look elsewhere')
      },
    },
  )
  const things: [string, unknown][] = [
    ['undefined', undefined],
    ['null', null],
    ['text', 'no'],
    ['a frozen error', Object.freeze(new Error('cold'))],
    ['a proxy that throws at every look', hostile],
    ['an error of another realm', runInNewContext('new TypeError("foreign")')],
    ['an error that is its own cause', cyclic],
    ['a symbol', Symbol('s')],
    ['a function', () => undefined],
  ]
  for (const [name, thing] of things) {
    test(`P12: throws ${name}, in a sync handler, a rejection, and a quick try: failed with just that`, async () => {
      const ways: Handler[] = [
        () => {
          throw thing
        },
        async () => Promise.reject(thing),
      ]
      for (const handler of ways) {
        for (const immediate of [undefined, { tries: 1, delayMs: 10 }]) {
          const { clock, start, ended } = setUp(handler, immediate && { immediate })
          start()
          await clock.advance(10)
          expect(ended).toHaveLength(1)
          expect(ended[0]!.outcome.kind).toBe('failed')
          expect((ended[0]!.outcome as { error: unknown }).error === thing).toBe(true)
        }
      }
    })
  }
})

describe('what the handler sees', () => {
  test('on a main topic: a message of its own that is as it came, and a context of the first attempt', async () => {
    let seen: unknown
    const { clock, start } = setUp(({ topic, partition, message, heartbeat }, ctx) => {
      const { attempt, maxAttempts, tryInAttempt, dueAt, firstFailedAt, source, value } = ctx
      seen = { topic, partition, message, attempt, maxAttempts, tryInAttempt, dueAt, firstFailedAt, source, value }
      expect(ctx.signal.aborted).toBe(false)
      return heartbeat()
    })
    const original = message(7)
    start(7, undefined, { message: original })
    await clock.settle()
    expect(seen).toEqual({
      topic: 'orders',
      partition: 2,
      message: { ...original, headers: {} },
      attempt: 1,
      maxAttempts: 4,
      tryInAttempt: 1,
      dueAt: undefined,
      firstFailedAt: undefined,
      source: { topic: 'orders', partition: 2, offset: '7' },
      value: undefined,
    })
  })

  test('on a retry: place and time of the first delivery, and where the copy stands', async () => {
    let seen: any
    const { clock, start } = setUp((payload, ctx) => {
      seen = { payload, ctx, firstFailedAt: ctx.firstFailedAt, source: ctx.source, dueAt: ctx.dueAt }
    })
    const tier = lane(0, { topic: 'orders.retry.1m', gated: true })
    const opened = {
      kind: 'handle',
      main: 'orders',
      attempt: 3,
      dueAt: 1_700_000_000_000,
      original: { topic: 'orders', partition: 5, offset: 2n ** 60n, timestamp: 1_699_999_999_999 },
      firstFailedAt: 1_699_999_999_999,
      history: [],
      headers: [['a', Buffer.from('1')]],
      problems: [],
    }
    start(3, tier, { opened: opened as never })
    await clock.settle()
    expect(seen.payload).toMatchObject({ topic: 'orders', partition: 5 })
    expect(seen.payload.message).toMatchObject({
      offset: '1152921504606846976',
      timestamp: '1699999999999',
      headers: { a: Buffer.from('1') },
    })
    expect(seen.source).toEqual({ topic: 'orders.retry.1m', partition: 0, offset: '3' })
    expect(seen.ctx.attempt).toBe(3)
    expect(seen.dueAt).toBe(1_700_000_000_000)
    expect(seen.firstFailedAt).toEqual(new Date(1_699_999_999_999))
  })

  test('ctx.logger adds the place of the record', async () => {
    const lines: unknown[] = []
    const logger = { ...silentLogger, warn: (...line: unknown[]) => lines.push(line) }
    const clock = createTestClock()
    const runner = createAttemptRunner({
      handler: (_, ctx) => ctx.logger.warn('odd', { id: 1 }),
      handlerTimeoutMs: TIMEOUT,
      immediate: { tries: 0, delayMs: 0 },
      maxAttempts: 1,
      classifier: createClassifier({ unknownErrors: 'retry', now: () => 0 }),
      clock,
      emitter: recorder(clock).emitter,
      logger,
      frameName: 'frame',
      succeeded: () => undefined,
      now: () => 0,
      ended: () => undefined,
      pauseChanged: () => undefined,
      stopping: () => false,
    })
    runner.start(lane(), entry(4), undefined)
    await clock.settle()
    expect(lines).toEqual([['odd', { topic: 'orders', partition: 0, offset: '4', attempt: 1, id: 1 }]])
  })
})

describe('ctx.send()', () => {
  test('stages what the handler gives, in order', async () => {
    const { clock, start, ended } = setUp((_, ctx) => {
      ctx.send({ topic: 'a', value: '1' })
      ctx.send([
        { topic: 'b', value: '2' },
        { topic: 'c', value: null },
      ])
    })
    start()
    await clock.settle()
    expect(ended[0]!.attempt.sends?.map(({ topic }) => topic)).toEqual(['a', 'b', 'c'])
  })

  test('throws once the handler has ended, in one line that names the record', async () => {
    let ctx!: HandlerContext
    const { clock, start, ended } = setUp((_, context) => {
      ctx = context
    })
    start()
    await clock.settle()
    expect(() => ctx.send({ topic: 'a', value: '1' })).toThrow(
      /ctx\.send\(\) was called after the handler of orders\/2@7/,
    )
    expect(ended[0]!.attempt.sends).toBeUndefined()
  })

  test('what a failed quick try staged is dropped, and what it sends afterwards is refused', async () => {
    const contexts: HandlerContext[] = []
    const { clock, start, ended } = setUp(
      (_, ctx) => {
        contexts.push(ctx)
        ctx.send({ topic: 'a', value: `${ctx.tryInAttempt}` })
        if (ctx.tryInAttempt === 1) throw new RetryableError('soon')
        // A dangling part of the first try comes back to life during the second.
        expect(() => contexts[0]!.send({ topic: 'late', value: '' })).toThrow('had ended')
      },
      { immediate: { tries: 1, delayMs: 100 } },
    )
    start()
    await clock.settle()
    expect(() => contexts[0]!.send({ topic: 'gap', value: '' })).toThrow('had ended')
    await clock.advance(100)
    expect(ended[0]!.attempt.sends).toMatchObject([{ topic: 'a', value: Buffer.from('2') }])
    expect(contexts.map(({ tryInAttempt }) => tryInAttempt)).toEqual([1, 2])
  })
})

describe('handlerTimeout', () => {
  test('aborts the signal; when the handler settles in the grace, whatever the way, the attempt has timed out', async () => {
    for (const end of ['resolve', 'reject'] as const) {
      const held = hold()
      const { clock, start, ended, of } = setUp(async (_, ctx) => {
        ctx.signal.addEventListener('abort', () =>
          end === 'resolve' ? held.resolve() : held.reject(ctx.signal.reason),
        )
        await held.promise
      })
      start()
      await clock.advance(TIMEOUT - 1)
      expect(ended).toEqual([])
      await clock.advance(1)
      expect(ended.map(({ outcome }) => outcome.kind)).toEqual(['timeout'])
      const { signal } = ended[0]!.attempt
      expect(signal.reason).toBeInstanceOf(RetrylineError)
      expect(signal.reason.code).toBe('RETRYLINE_HANDLER_TIMEOUT')
      expect(of('abandoned')).toEqual([])
    }
  })

  test('a signal that is first asked for after the time-out is aborted already', async () => {
    const held = hold()
    let aborted: boolean | undefined
    const { clock, start } = setUp(async (_, ctx) => {
      await held.promise
      aborted = ctx.signal.aborted
    })
    start()
    await clock.advance(TIMEOUT)
    held.resolve()
    await clock.settle()
    expect(aborted).toBe(true)
  })

  test('one that does not settle in the grace is abandoned; when it settles after all that is told and changes nothing', async () => {
    for (const end of ['resolve', 'reject'] as const) {
      const held = hold()
      let ctx!: HandlerContext
      const { clock, start, ended, of } = setUp((_, context) => {
        ctx = context
        return held.promise
      })
      start()
      await clock.advance(TIMEOUT + GRACE_MS - 1)
      expect(ended).toEqual([])
      await clock.advance(1)
      expect(ended.map(({ outcome }) => outcome.kind)).toEqual(['timeout'])
      expect(of('abandoned')).toMatchObject([{ offset: '7', attempt: 1, runningMs: 31_000, during: 'handler-timeout' }])
      if (end === 'resolve') held.resolve()
      else held.reject(new Error('too late'))
      await clock.settle()
      expect(ended).toHaveLength(1)
      expect(of('late')).toMatchObject([{ offset: '7', outcome: end === 'resolve' ? 'ok' : 'failed' }])
      expect(() => ctx.send({ topic: 'a', value: null })).toThrow('had ended')
      expect(clock.timers).toBe(0)
    }
  })

  test('each attempt has its own time, though one timer serves all', async () => {
    const held = [hold(), hold(), hold()]
    let next = 0
    const { clock, start, ended } = setUp(() => held[next++]!.promise)
    start(1)
    await clock.advance(10_000)
    start(2)
    await clock.advance(10_000)
    start(3)
    expect(clock.timers).toBe(1)
    held[1]!.resolve()
    await clock.advance(10_000 + GRACE_MS)
    expect(ended.map(({ attempt, outcome }) => [attempt.entry.offset, outcome.kind])).toEqual([
      ['2', 'ok'],
      ['1', 'timeout'],
    ])
    await clock.advance(18_999)
    expect(ended).toHaveLength(2)
    await clock.advance(1 + GRACE_MS)
    expect(ended).toHaveLength(3)
    expect(clock.timers).toBe(0)
  })

  test('P12: a time-out is reported as an attempt by what judges it, not here as well', async () => {
    const { clock, start, of } = setUp(() => hold().promise)
    start()
    await clock.advance(TIMEOUT + GRACE_MS)
    expect(of('attempt')).toEqual([])
  })
})

describe('immediate', () => {
  test('tries again so often, so far apart, and then fails with the last error', async () => {
    let calls = 0
    const { clock, start, ended, of } = setUp(
      () => {
        throw new RetryableError(`failure ${++calls}`)
      },
      { immediate: { tries: 2, delayMs: 100 } },
    )
    start()
    await clock.advance(99)
    expect(calls).toBe(1)
    await clock.advance(101)
    expect(calls).toBe(3)
    expect(ended.map(({ outcome }) => outcome)).toMatchObject([{ kind: 'failed', error: { message: 'failure 3' } }])
    expect(of('attempt')).toMatchObject([
      { outcome: 'again', tryInAttempt: 1, errorClass: 'RetryableError' },
      { outcome: 'again', tryInAttempt: 2, errorClass: 'RetryableError' },
    ])
  })

  test('a quick try that succeeds ends the attempt well', async () => {
    const { clock, start, kinds } = setUp(
      (_, ctx) => {
        if (ctx.tryInAttempt < 3) throw new RetryableError('soon')
      },
      { immediate: { tries: 2, delayMs: 100 } },
    )
    start()
    await clock.advance(200)
    expect(kinds()).toEqual(['ok'])
  })

  test('only for what is worth a retry, and asks for no longer wait', async () => {
    for (const error of [
      new NonRetryableError('no'),
      new Error('unknown'),
      new RetryableError('busy', { after: 5_000 }),
    ]) {
      let calls = 0
      const { clock, start, kinds } = setUp(
        () => {
          calls++
          throw error
        },
        { immediate: { tries: 2, delayMs: 100 } },
      )
      start()
      await clock.advance(1_000)
      expect([calls, kinds()]).toEqual([1, ['failed']])
    }
  })

  test('handlerTimeout bounds all tries together', async () => {
    let calls = 0
    const { clock, start, kinds } = setUp(
      async () => {
        calls++
        await new Promise<void>((resolve) => void clock.after(12_000, resolve))
        throw new RetryableError('slow')
      },
      { immediate: { tries: 5, delayMs: 4_000 } },
    )
    start()
    // 12 s, 4 s, 12 s: a third try would begin after 32 s.
    await clock.advance(28_000)
    expect([calls, kinds()]).toEqual([2, ['failed']])
  })

  test('a time-out in a later try is one of the attempt', async () => {
    const { clock, start, kinds } = setUp(
      async (_, ctx) => {
        if (ctx.tryInAttempt === 1) throw new RetryableError('soon')
        await hold().promise
      },
      { immediate: { tries: 1, delayMs: 100 } },
    )
    start()
    await clock.advance(TIMEOUT + GRACE_MS)
    expect(kinds()).toEqual(['timeout'])
  })

  test('none once the consumer stops or the lane is gone', async () => {
    for (const what of ['stop', 'close'] as const) {
      let calls = 0
      const { clock, start, kinds, stop, lane } = setUp(
        () => {
          calls++
          throw new RetryableError('soon')
        },
        { immediate: { tries: 5, delayMs: 100 } },
      )
      start()
      await clock.settle()
      if (what === 'stop') stop()
      else lane.close()
      await clock.advance(100)
      expect([calls, kinds()]).toEqual([1, ['failed']])
    }
  })

  test('P9: an attempt that is given up between two tries leaves no timer', async () => {
    const { clock, start, kinds, runner } = setUp(
      () => {
        throw new RetryableError('soon')
      },
      { immediate: { tries: 5, delayMs: 5_000 } },
    )
    start()
    await clock.settle()
    runner.watchdog.abandonAll()
    runner.watchdog.close()
    expect(kinds()).toEqual(['again'])
    expect(clock.timers).toBe(0)
  })
})

describe('pause()', () => {
  test('pause and throw: again, no attempt counted', async () => {
    let resume!: () => void
    const { clock, start, kinds, lane, of, pauses } = setUp(({ pause }) => {
      resume = pause()
      throw new Error('the database is away')
    })
    start()
    await clock.settle()
    expect(kinds()).toEqual(['again'])
    expect(of('attempt')).toMatchObject([{ outcome: 'again', attempt: 1 }])
    expect(lane.handlerPauses).toBe(1)
    resume()
    resume()
    expect(lane.handlerPauses).toBe(0)
    expect(pauses).toEqual([1, 0])
  })

  test('P4: pause, resume, then throw is a failure like any: the record does not go round for ever', async () => {
    const { clock, start, kinds } = setUp(async ({ pause }) => {
      const resume = pause()
      try {
        throw new Error('no')
      } finally {
        resume()
      }
    })
    start()
    await clock.settle()
    expect(kinds()).toEqual(['failed'])
  })

  test('pause, resume, then success is ok; so is success while paused', async () => {
    for (const resumes of [true, false]) {
      const { clock, start, kinds, lane } = setUp(async ({ pause }) => {
        const resume = pause()
        if (resumes) resume()
      })
      start()
      await clock.settle()
      expect(kinds()).toEqual(['ok'])
      expect(lane.handlerPauses).toBe(resumes ? 0 : 1)
    }
  })

  test('two pauses end with two resumes', async () => {
    const resumes: (() => void)[] = []
    const { clock, start, lane } = setUp(({ pause }) => void resumes.push(pause(), pause()))
    start()
    await clock.settle()
    expect(lane.handlerPauses).toBe(2)
    for (const resume of resumes) resume()
    expect(lane.handlerPauses).toBe(0)
  })

  test('P12: is told, and so is the resume', async () => {
    const { clock, start, of } = setUp(({ pause }) => pause()())
    start()
    await clock.settle()
    expect(of('paused')).toMatchObject([{ by: 'handler', topic: 'orders', partition: 2 }])
    expect(of('resumed')).toMatchObject([{ by: 'handler', topic: 'orders', partition: 2 }])
  })
})

describe('P9: a shutdown that has used up its time', () => {
  test('aborts what runs; what settles then is left to the next owner', async () => {
    for (const end of ['resolve', 'reject'] as const) {
      const { clock, start, kinds, runner } = setUp(
        (_, ctx) =>
          new Promise<void>((resolve, reject) => {
            ctx.signal.addEventListener('abort', () => (end === 'resolve' ? resolve() : reject(ctx.signal.reason)))
          }),
      )
      start()
      await clock.settle()
      runner.watchdog.abortAll(new RetrylineError('RETRYLINE_STATE', 'stopping'))
      await clock.settle()
      expect(kinds()).toEqual(['again'])
    }
  })

  test('gives up what does not settle, and tells of each', async () => {
    const { clock, start, ended, of, runner } = setUp(() => hold().promise)
    start(1)
    start(2)
    await clock.settle()
    runner.watchdog.abandonAll()
    expect(of('abandoned')).toMatchObject([
      { offset: '1', during: 'shutdown' },
      { offset: '2', during: 'shutdown' },
    ])
    expect(ended).toHaveLength(2)
    expect(runner.watchdog.running).toEqual([])
    runner.watchdog.close()
    expect(clock.timers).toBe(0)
  })
})

test('P9: the function that awaits the handler bears the name by which stop() finds it', async () => {
  let stack: string | undefined
  const { clock, start } = setUp(async () => {
    await Promise.resolve()
    stack = new Error('where').stack
  })
  start()
  await clock.settle()
  expect(stack).toContain('retryline-handler-1')
})
