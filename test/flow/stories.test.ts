/** Short stories of one record each, on the fake broker: what a user may expect, and how a user's test may look. */
import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src/index'
import { minutes, shop } from './given'

const down = new RetryableError('the bank is down')

describe('a record that fails', () => {
  it('is tried after 1m, 10m and 1h, and is then a dead letter', async () => {
    const calls: [attempt: number, minute: number][] = []
    const { kafka, header } = await shop({
      handler: (_payload, { attempt }) => {
        calls.push([attempt, minutes(kafka.clock.now())])
        throw down
      },
    })
    kafka.produce('orders', { key: 'order-1', value: '42' })
    await kafka.clock.advance('2h')
    expect(calls).toEqual([[1, 0], [2, 1], [3, 11], [4, 71]]) // prettier-ignore
    expect(header('orders.dlq', 'x-failure-reason')).toEqual(['exhausted'])
  })

  it('never holds up the record behind it', async () => {
    const done: string[] = []
    const { kafka } = await shop({
      handler: ({ message }, { attempt }) => {
        if (String(message.value) === 'bad' && attempt === 1) throw down
        done.push(String(message.value))
      },
    })
    for (const value of ['bad', 'good', 'better']) kafka.produce('orders', { value })
    await kafka.clock.settle()
    expect(done).toEqual(['good', 'better'])
    expect(kafka.committed('billing', 'orders').get(0)?.offset).toBe(0n)
    await kafka.clock.advance('1m')
    expect(done).toEqual(['good', 'better', 'bad'])
    expect(kafka.committed('billing', 'orders').get(0)?.offset).toBe(3n)
  })

  it('waits in a longer tier where the server asks for it, and that counts one attempt', async () => {
    const attempts: number[] = []
    const busy = Object.assign(new Error('429'), { status: 429, headers: { 'retry-after': '300' } })
    const { kafka } = await shop({
      handler: (_payload, { attempt }) => {
        attempts.push(attempt)
        if (attempt === 1) throw busy
      },
    })
    kafka.produce('orders', { value: '42' })
    await kafka.clock.settle()
    expect([kafka.records('orders.retry.1m').length, kafka.records('orders.retry.10m').length]).toEqual([0, 1])
    await kafka.clock.advance('10m')
    expect(attempts).toEqual([1, 2])
  })

  it('is given up when the next attempt would be past its deadline', async () => {
    const { kafka, header } = await shop({
      deadline: '5m',
      handler: () => {
        throw down
      },
    })
    kafka.produce('orders', { value: '42' })
    await kafka.clock.advance('2m')
    expect(header('orders.dlq', 'x-failure-reason')).toEqual(['deadline'])
    expect(header('orders.dlq', 'x-attempt')).toEqual(['2'])
  })

  it('may be tried a few times at once, within one attempt', async () => {
    const tries: [attempt: number, tryInAttempt: number][] = []
    const { kafka } = await shop({
      immediate: { tries: 2, delay: '100ms' },
      handler: (_payload, { attempt, tryInAttempt }) => {
        tries.push([attempt, tryInAttempt])
        if (tries.length < 5) throw down
      },
    })
    kafka.produce('orders', { value: '42' })
    await kafka.clock.advance('1s')
    expect(tries).toEqual([[1, 1], [1, 2], [1, 3]]) // prettier-ignore
    await kafka.clock.advance('1m')
    expect(tries.slice(3)).toEqual([[2, 1], [2, 2]]) // prettier-ignore
    expect(kafka.records('orders.retry.10m')).toEqual([])
  })
})

describe('a record that nobody can read', () => {
  it('is a dead letter at once, its bytes untouched, and the handler never sees it', async () => {
    const value = Buffer.from([0x7b, 0xff, 0x00, 0xc3])
    const seen: unknown[] = []
    const { kafka, header } = await shop({ decode: 'json', handler: (_payload, ctx) => void seen.push(ctx.value) })
    kafka.produce('orders', { key: Buffer.from([0xfe]), value })
    kafka.produce('orders', { value: '{"total":42}' })
    await kafka.clock.settle()
    expect(seen).toEqual([{ total: 42 }])
    expect(header('orders.dlq', 'x-failure-reason')).toEqual(['undecodable'])
    expect(kafka.records('orders.dlq')).toMatchObject([{ key: Buffer.from([0xfe]), value }])
  })
})

describe('what a handler sends', () => {
  it('is published when its record settles, and dropped where the attempt fails', async () => {
    const { kafka } = await shop({
      handler: ({ message }, ctx) => {
        ctx.send({ topic: 'invoices', key: message.key, value: `invoice of attempt ${ctx.attempt}` })
        if (ctx.attempt === 1) throw down
      },
    })
    kafka.produce('orders', { key: 'order-1', value: '42' })
    await kafka.clock.settle()
    expect(kafka.records('invoices')).toEqual([])
    await kafka.clock.advance('1m')
    expect(kafka.records('invoices').map(({ key, value }) => [String(key), String(value)])).toEqual([
      ['order-1', 'invoice of attempt 2'],
    ])
  })
})

describe('a handler that pauses and throws', () => {
  it('gets the same record again after the resume, and no attempt is counted', async () => {
    const calls: number[] = []
    let resume: (() => void) | undefined
    const { kafka } = await shop({
      handler: ({ pause }, { attempt }) => {
        calls.push(attempt)
        if (calls.length > 1) return
        resume = pause()
        throw new Error('the bank asks for a break')
      },
    })
    kafka.produce('orders', { value: '42' })
    await kafka.clock.advance('1h')
    expect(calls).toEqual([1])
    resume?.()
    await kafka.clock.advance('1s')
    expect(calls).toEqual([1, 1])
    expect(kafka.committed('billing', 'orders').get(0)?.offset).toBe(1n)
    expect([kafka.records('orders.retry.1m').length, kafka.records('orders.dlq').length]).toEqual([0, 0])
  })
})

describe('a handler that takes too long', () => {
  it('has its signal aborted, and its record is tried again', async () => {
    const reasons: string[] = []
    const { kafka, header } = await shop({
      handlerTimeout: '5s',
      handler: (_payload, { attempt, signal }) => {
        if (attempt > 1) return undefined
        return new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push((signal.reason as { code: string }).code)
            reject(new Error('given up'))
          })
        })
      },
    })
    kafka.produce('orders', { value: '42' })
    await kafka.clock.advance('10s')
    expect(reasons).toEqual(['RETRYLINE_HANDLER_TIMEOUT'])
    expect(header('orders.retry.1m', 'x-due-at')).toEqual([`${Date.UTC(2030, 0, 1, 0, 1, 5)}`])
    await kafka.clock.advance('1m')
    expect(kafka.committed('billing.retry.1m', 'orders.retry.1m').get(0)?.offset).toBe(1n)
  })
})
