import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { createResilientConsumer, silentLogger, type Handler, type ResilientConsumerOptions } from '../../../src/index'
import { createFakeKafka } from '../../../src/testing'
import { createManualClock } from '../../../src/testing/clock'

/** The rules of "How the fake broker's clock moves" again, with a consumer of retryline, which counts its own calls. */

const START = Date.UTC(2024, 0, 1)

async function consuming(handler: Handler, options: Partial<ResilientConsumerOptions> = {}, stallAfter = 100) {
  const kafka = createFakeKafka({ topics: { orders: 2 }, startAt: START, stallAfter })
  const consumer = createResilientConsumer({
    kafka,
    groupId: 'billing',
    topic: 'orders',
    schedule: ['1m'],
    topicSetup: 'create',
    logger: silentLogger,
    handler,
    ...options,
  })
  await consumer.start()
  onTestFinished(() => {
    void consumer.stop()
    return kafka.clock.advance('1m').catch(() => undefined)
  })
  return kafka
}

const never = () => new Promise<never>(() => undefined)

describe('rule 1: work is counted, not guessed', () => {
  let server: Server | undefined
  afterEach(() => void server?.close())

  it('waits for handlers that do real I/O side by side, which takes no virtual time', async () => {
    server = createServer((_request, response) => void response.end('fine'))
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const answers: string[] = []
    const handler = async () => void answers.push(await (await fetch(`http://127.0.0.1:${port}/`)).text())
    const kafka = await consuming(handler, { ordering: 'unordered' }, 2000)
    for (let i = 0; i < 20; i++) kafka.produce('orders', { value: 'x' })
    await kafka.clock.settle()
    expect(answers).toEqual(Array(20).fill('fine'))
    expect(kafka.clock.now()).toBe(START)
    expect(kafka.clock.busy()).toEqual([])
  })

  it('counts a decoder too', async () => {
    const values: unknown[] = []
    const decode = async (value: Buffer | null) => {
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
      return value?.length
    }
    const kafka = await consuming((_, { value }) => void values.push(value), { decode })
    kafka.produce('orders', { value: 'four' })
    await kafka.clock.settle()
    expect(values).toEqual([4])
  })
})

describe('rule 2: a handler that waits is parked', () => {
  it('for the virtual clock, and is woken at its time', async () => {
    const woken: number[] = []
    const kafka = await consuming(async () => {
      await kafka.clock.sleep('10s')
      woken.push(kafka.clock.now() - START)
    })
    kafka.produce('orders', { value: 'x' })
    await kafka.clock.advance('9999ms')
    expect(woken).toEqual([])
    await kafka.clock.advance('1ms')
    expect(woken).toEqual([10_000])
  })

  it('for a request of its own that is held', async () => {
    const kafka = await consuming(
      async () => void (await producer.send({ topic: 'copies', messages: [{ value: 'x' }] })),
    )
    kafka.createTopic('copies')
    const producer = kafka.producer()
    await producer.connect()
    const held = kafka.broker.next('publish', { topic: 'copies' }).hold()
    kafka.produce('orders', { value: 'x' })
    await held.caught
    await kafka.clock.advance('5s')
    expect(kafka.clock.now()).toBe(START + 5000)
    held.release()
    await kafka.clock.settle()
    expect(kafka.records('copies')).toHaveLength(1)
  })
})

describe('rule 3: from timer to timer, each at its own time', () => {
  it('retries at the times of their schedules, whatever the step', async () => {
    const at: number[] = []
    const kafka = await consuming(
      () => {
        at.push(kafka.clock.now() - START)
        throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' })
      },
      { schedule: ['90s', '2m', '1d'] },
    )
    kafka.produce('orders', { value: 'x' })
    await kafka.clock.advance('2d')
    expect(at).toEqual([0, 90_000, 210_000, 86_610_000])
  })
})

describe('rule 4: no progress for `stallAfter`', () => {
  it('lets the time-out of the stuck handler fire, and the record goes on', async () => {
    const kafka = await consuming((_, { attempt }) => (attempt === 1 ? never() : undefined), { handlerTimeout: '5s' })
    kafka.produce('orders', { value: 'x' })
    await kafka.clock.advance('10s')
    expect(kafka.records('orders.retry.1m')).toHaveLength(1)
    await kafka.clock.advance('1m')
    expect([...kafka.committed('billing.retry.1m', 'orders.retry.1m').values()].map(({ offset }) => offset)).toContain(
      1n,
    )
  })

  it('rejects where that stands behind the target, and names topic, partition, offset and attempt', async () => {
    const kafka = await consuming(never, { handlerTimeout: '1h' })
    for (let i = 0; i < 2; i++) kafka.produce('orders', { value: 'x', partition: 1 })
    const stuck = kafka.clock.advance('1m')
    await expect(stuck).rejects.toMatchObject({ code: 'RETRYLINE_TESTING' })
    await expect(stuck).rejects.toThrow('orders/1@0 (attempt 1)')
    expect(kafka.clock.now()).toBe(START)
  })

  it('names the place on the retry topic where a later attempt is stuck', async () => {
    const kafka = await consuming(
      (_, { attempt }) => {
        if (attempt === 2) return never()
        throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' })
      },
      { handlerTimeout: '1h' },
    )
    kafka.produce('orders', { key: 'k', value: 'x' })
    await expect(kafka.clock.advance('2m')).rejects.toThrow(/orders\.retry\.1m\/\d@0 \(attempt 2\)/)
    expect(kafka.clock.now()).toBe(START + 60_000)
  })
})

describe('rule 5: not from inside a handler', () => {
  it('rejects, and names the handler', async () => {
    const failures: unknown[] = []
    const kafka = await consuming(() => kafka.clock.advance('1s').catch((error: unknown) => failures.push(error)))
    kafka.produce('orders', { value: 'x', partition: 1 })
    await kafka.clock.advance('1m')
    expect(String(failures[0])).toContain('inside a handler (orders/1@0 (attempt 1))')
  })

  it('knows the clock that it is inside of: another one may be moved', async () => {
    const moved: number[] = []
    const kafka = await consuming(async () => {
      const other = createManualClock({ startAt: START })
      await other.advance('1h')
      // Inside both: neither may be moved, though the inner course is the other clock's.
      const work = other.track(() => 'inner')
      const refused = await work.run(() =>
        Promise.all([kafka.clock, other].map((clock) => clock.advance(1).catch((error: unknown) => String(error)))),
      )
      work.done()
      expect(refused).toEqual([expect.stringContaining('(orders/0@0'), expect.stringContaining('(inner)')])
      moved.push(other.now() - START)
    })
    kafka.produce('orders', { value: 'x', partition: 0 })
    await kafka.clock.settle()
    expect(moved).toEqual([3_600_000])
  })
})

describe('rule 6: an idle consumer costs no time', () => {
  it('passes a year at once, its members stay, and it still works', async () => {
    const handled: string[] = []
    const kafka = await consuming(({ message }) => void handled.push(String(message.value)), {
      schedule: ['1m', '10m', '1h'],
    })
    kafka.produce('orders', { value: 'before' })
    await kafka.clock.advance('1m')
    expect(kafka.clock.timers()).toBe(0)
    const seen = kafka.broker.group('billing')
    const began = performance.now()
    await kafka.clock.advance('365d')
    expect(performance.now() - began).toBeLessThan(500)
    kafka.produce('orders', { value: 'after' })
    await kafka.clock.settle()
    expect(handled).toEqual(['before', 'after'])
    expect(kafka.broker.group('billing')).toEqual(seen)
  })
})

describe('runUntil', () => {
  const clock = () => createManualClock({ startAt: START, stallAfter: 50 })

  it('goes to the timer after which it is enough, and no further', async () => {
    const manual = clock()
    const fired: number[] = []
    for (const at of [10, 20, 30]) manual.after(at, () => void fired.push(at))
    expect(await manual.runUntil(() => fired.length === 2, 1000)).toBe('enough')
    expect([fired, manual.monotonic()]).toEqual([[10, 20], 20])
    expect(await manual.runUntil(() => true, 1000)).toBe('enough')
    expect(manual.monotonic()).toBe(20)
    expect(await manual.runUntil(() => false, 5)).toBe('limit')
    expect(await manual.runUntil(() => false, 1000)).toBe('no timer')
    expect([fired, manual.monotonic()]).toEqual([[10, 20, 30], 30])
  })

  it('asks only when all is quiet', async () => {
    const manual = clock()
    const asked: string[][] = []
    const work = manual.track(() => 'work')
    setImmediate(() => setImmediate(() => work.done()))
    await manual.runUntil(() => asked.push(manual.busy()) > 0, 0)
    expect(asked).toEqual([[]])
  })

  it('rejects as advance does, and waits its turn', async () => {
    const manual = clock()
    const work = manual.track(() => 'orders/0@7')
    const first = manual.runUntil(() => true, 10)
    const second = manual.advance(10)
    await expect(first).rejects.toThrow('orders/0@7')
    await expect(second).rejects.toThrow('orders/0@7')
    work.done()
    await work.run(() => expect(manual.runUntil(() => true, 10)).resolves.toBe('enough'))
  })
})
