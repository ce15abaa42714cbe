import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { CLOCK, clockOf, type Clock } from '../../../src/ports'
import { createFakeKafka } from '../../../src/testing'
import { createManualClock } from '../../../src/testing/clock'

/** The rules are those of "How the fake broker's clock moves"; each has its tests under its own number. */

const START = Date.UTC(2024, 0, 1)
const manual = (stallAfter = 200) => createManualClock({ startAt: START, stallAfter })

function deferred<T = void>() {
  let resolve!: (value: T) => void
  const promise = new Promise<T>((settle) => (resolve = settle))
  return { promise, resolve }
}

async function consuming(options: Parameters<typeof createFakeKafka>[0], eachMessage: (m: any) => Promise<void>) {
  const kafka = createFakeKafka({ topics: { orders: 1 }, startAt: START, stallAfter: 200, ...options })
  const consumer = kafka.consumer({ groupId: 'billing' })
  await consumer.connect()
  await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
  await consumer.run({ eachMessage })
  return { kafka, consumer }
}

describe('rule 1: work is counted, not guessed', () => {
  let server: Server | undefined
  afterEach(() => void server?.close())

  it('waits for a handler that does real I/O, which takes no virtual time', async () => {
    server = createServer((_request, response) => void response.end('fine'))
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const answers: string[] = []
    const { kafka } = await consuming({ stallAfter: 2000 }, async () => {
      answers.push(await (await fetch(`http://127.0.0.1:${port}/`)).text())
    })
    for (let i = 0; i < 3; i++) kafka.produce('orders', { value: 'x' })
    await kafka.clock.settle()
    expect(answers).toEqual(['fine', 'fine', 'fine'])
    expect(kafka.clock.now()).toBe(START)
  })

  it('counts a call that was reported through the registered symbol', async () => {
    const kafka = createFakeKafka()
    expect(clockOf(kafka)).toBe(kafka.clock)
    expect(kafka[CLOCK]).toBe((kafka as unknown as { [key: symbol]: Clock })[Symbol.for('retryline.clock')])
    const gate = deferred()
    const work = kafka.clock.track(() => 'orders/0@5')
    let moved = false
    const moving = kafka.clock.advance('1m').then(() => (moved = true))
    void gate.promise.then(() => work.done())
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    expect(moved).toBe(false)
    expect(kafka.clock.busy()).toEqual(['orders/0@5'])
    gate.resolve()
    await moving
    expect(kafka.clock.busy()).toEqual([])
  })

  it('counts each request to the broker', async () => {
    const kafka = createFakeKafka({ topics: { orders: 1 } })
    const producer = kafka.producer()
    await producer.connect()
    let stored = false
    void producer.send({ topic: 'orders', messages: [{ value: 'x' }] }).then(() => (stored = true))
    await kafka.clock.settle()
    expect(stored).toBe(true)
  })

  it('counts a callback of `soon` until it has run or was cancelled', async () => {
    const clock = manual()
    const calls: string[] = []
    clock.soon(() => clock.soon(() => calls.push('nested')))
    clock.soon(() => calls.push('never')).cancel()
    await clock.settle()
    expect(calls).toEqual(['nested'])
    expect(clock.busy()).toEqual([])
  })
})

describe('rule 2: quiet is nothing busy, and one macrotask in which nothing happened', () => {
  it('does not take the gap between two pieces of work for quiet', async () => {
    const clock = manual()
    const seen: string[] = []
    const step = async (name: string) => {
      const work = clock.track(() => name)
      await clock.turn()
      seen.push(name)
      work.done()
    }
    void step('first').then(() => step('second'))
    await clock.settle()
    expect(seen).toEqual(['first', 'second'])
  })

  it('takes a handler that waits for the virtual clock as parked', async () => {
    const woken: number[] = []
    const { kafka } = await consuming({}, async () => {
      await kafka.clock.sleep('10s')
      woken.push(kafka.clock.now() - START)
    })
    kafka.produce('orders', { value: 'x' })
    await kafka.clock.advance('9s')
    expect(woken).toEqual([])
    await kafka.clock.advance('1s')
    expect(woken).toEqual([10_000])
  })

  it('takes a handler that waits for a held request as parked, and the request too', async () => {
    const kafka = createFakeKafka({ topics: { orders: 1, copies: 1 }, stallAfter: 200 })
    const producer = kafka.producer()
    await producer.connect()
    const consumer = kafka.consumer({ groupId: 'billing' })
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
    let done = false
    await consumer.run({
      eachMessage: async () => {
        await producer.send({ topic: 'copies', messages: [{ value: 'copy' }] })
        done = true
      },
    })
    const held = kafka.broker.next('publish', { topic: 'copies' }).hold()
    kafka.produce('orders', { value: 'x' })
    await held.caught
    await kafka.clock.advance('5s')
    expect(done).toBe(false)
    held.release()
    await kafka.clock.settle()
    expect(done).toBe(true)
    expect(kafka.records('copies')).toHaveLength(1)
  })

  it('parks the call that waits for the call that waits', async () => {
    const clock = manual()
    const outer = clock.track(() => 'outer')
    const done = outer.run(async () => {
      const inner = clock.track(() => 'inner')
      await inner.run(() => clock.sleep('1h'))
      inner.done()
    })
    void done.then(() => outer.done())
    await clock.advance('1h')
    await done
    expect(clock.busy()).toEqual([])
  })

  it('counts a call as busy again after its wait', async () => {
    const clock = manual()
    const gate = deferred()
    const work = clock.track(() => 'orders/0@1')
    void work.run(async () => {
      await clock.sleep(10)
      await gate.promise
      work.done()
    })
    let moved = false
    const moving = clock.advance(20).then(() => (moved = true))
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    expect(moved).toBe(false)
    gate.resolve()
    await moving
  })
})

describe('rule 3: from timer to timer', () => {
  it('fires in order of time, ties in order of insertion, each at its own time', async () => {
    const clock = manual()
    const fired: string[] = []
    const note = (name: string) => () => void fired.push(`${name}@${clock.monotonic()}`)
    clock.after(20, note('b'))
    clock.after(10, note('a1'))
    clock.at(START + 10, note('a2'))
    clock.after(10, note('a3'))
    clock.after(30, note('late'))
    await clock.advance(25)
    expect(fired).toEqual(['a1@10', 'a2@10', 'a3@10', 'b@20'])
    expect(clock.monotonic()).toBe(25)
  })

  it('lets what a timer starts come to rest before the next fires', async () => {
    const clock = manual()
    const seen: string[] = []
    clock.after(10, () => {
      const work = clock.track(() => 'work')
      void clock.turn().then(() => {
        seen.push('work of the first')
        work.done()
      })
    })
    clock.after(10, () => void seen.push('second'))
    await clock.advance(10)
    expect(seen).toEqual(['work of the first', 'second'])
  })

  it('fires timers that were set on the way, as far as they are due', async () => {
    const clock = manual()
    const fired: number[] = []
    const tick = (): void => {
      fired.push(clock.monotonic())
      clock.after(10, tick)
    }
    clock.after(10, tick)
    await clock.advance(35)
    expect(fired).toEqual([10, 20, 30])
    clock.after(0, () => void fired.push(-1))
    await clock.settle()
    expect(fired).toEqual([10, 20, 30, -1])
  })

  it('never fires a cancelled timer, nor any early', async () => {
    const clock = manual()
    const fired: number[] = []
    const timers = Array.from({ length: 500 }, (_, i) => clock.after(i * 7.3, () => void fired.push(i)))
    timers.forEach((timer, i) => {
      if (i % 3 !== 0) timer.cancel()
    })
    await clock.advance(7.3 * 300)
    expect(fired).toEqual(Array.from({ length: 101 }, (_, i) => 3 * i))
    expect(clock.timers()).toBe(Array.from({ length: 500 }).filter((_, i) => i > 300 && i % 3 === 0).length)
  })

  it('rejects with what a timer threw', async () => {
    const clock = manual()
    clock.after(5, () => {
      throw new Error('thrown by a timer')
    })
    await expect(clock.advance(10)).rejects.toThrow('thrown by a timer')
    await clock.advance(1)
    expect(clock.monotonic()).toBe(6)
  })
})

describe('rule 4: no progress for `stallAfter`', () => {
  it('rejects, and names topic, partition and offset of what is stuck', async () => {
    const { kafka } = await consuming({ stallAfter: 50 }, () => new Promise(() => undefined))
    kafka.produce('orders', { value: 'x' })
    const stuck = kafka.clock.advance('1m')
    await expect(stuck).rejects.toMatchObject({ code: 'RETRYLINE_TESTING' })
    await expect(stuck).rejects.toThrow('eachMessage of billing at orders/0@0')
    expect(kafka.clock.now()).toBe(START)
  })

  it('lets a deadline of what is stuck fire, and no other timer', async () => {
    const clock = manual(50)
    const fired: string[] = []
    const work = clock.track(() => 'orders/0@7')
    clock.after(1000, () => void fired.push('a plain wait'))
    clock.after(
      5000,
      () => {
        fired.push(`deadline@${clock.monotonic()}`)
        work.done()
      },
      'deadline',
    )
    await clock.advance('10s')
    // The plain one was held back by the stall: late, and never before its time.
    expect(fired).toEqual(['deadline@5000', 'a plain wait'])
    expect(clock.monotonic()).toBe(10_000)
  })

  it('holds back nothing that is due at the moment of the stall', async () => {
    const clock = manual(50)
    const fired: string[] = []
    const note = (name: string) => () => void fired.push(`${name}@${clock.monotonic()}`)
    clock.after(1000, () => {
      const work = clock.track(() => 'orders/0@7')
      clock.after(5000, () => work.done(), 'deadline')
    })
    clock.after(1000, note('the next partition'))
    clock.after(2000, note('later'))
    await clock.advance('10s')
    expect(fired).toEqual(['the next partition@1000', 'later@6000'])
  })

  it('names what is stuck, though a timer sets itself again for now', async () => {
    const clock = manual(50)
    clock.track(() => 'orders/0@7')
    const again = (): void => void clock.after(0, again)
    again()
    await expect(clock.advance('1s')).rejects.toThrow('orders/0@7')
  })

  it('leaves the deadline of a call that only waits where it is', async () => {
    const clock = manual(50)
    const fired: string[] = []
    const healthy = clock.track(() => 'healthy')
    void healthy.run(async () => {
      clock.after(1000, () => void fired.push('deadline of the healthy'), 'deadline')
      await clock.sleep('1h')
    })
    const stuck = clock.track(() => 'stuck')
    await expect(clock.advance('10s')).rejects.toThrow('stuck')
    expect(fired).toEqual([])
    stuck.done()
    await clock.advance('10s')
    expect(fired).toEqual(['deadline of the healthy'])
  })

  it('rejects where the deadline stands behind the target', async () => {
    const clock = manual(50)
    clock.track(() => 'orders/0@7')
    clock.after(5000, () => undefined, 'deadline')
    await expect(clock.advance('1s')).rejects.toThrow('orders/0@7')
  })

  it('sees progress in work that ends, however long all of it takes', async () => {
    const clock = manual(80)
    const step = async (): Promise<void> => {
      const work = clock.track(() => 'step')
      const until = performance.now() + 40
      while (performance.now() < until) await clock.turn()
      work.done()
    }
    let steps = 0
    void (async () => {
      for (; steps < 5; steps++) await step()
    })()
    await clock.advance('1s')
    expect(steps).toBe(5)
  })

  it('does not hang on work that starts again and again', async () => {
    const clock = manual(20)
    let stopped = false
    const again = (): void => {
      if (!stopped) clock.soon(again)
    }
    again()
    await expect(clock.advance('1s')).rejects.toThrow(/never rests|clock.soon/)
    stopped = true
  })

  it('names the batch that is handed over again and again in the same moment', async () => {
    const kafka = createFakeKafka({ topics: { orders: 1 }, stallAfter: 5000 })
    const consumer = kafka.consumer({ groupId: 'billing' })
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
    await consumer.run({ eachBatchAutoResolve: false, eachBatch: async () => undefined })
    kafka.produce('orders', { value: 'x' })
    await expect(kafka.clock.advance('1m')).rejects.toThrow(/orders\/0@0 was handed to billing 1000 times/)
    await consumer.disconnect()
  })

  it('waits, parked, for what the test itself will do', async () => {
    const gate = deferred()
    const { kafka } = await consuming({ stallAfter: 50 }, () => kafka.clock.park(gate.promise))
    kafka.produce('orders', { value: 'x' })
    await kafka.clock.advance('1h')
    expect(kafka.committed('billing', 'orders').get(0)).toBeUndefined()
    gate.resolve()
    await kafka.clock.settle()
  })
})

describe('rule 5: one at a time, and not from inside', () => {
  it('rejects inside a handler', async () => {
    const failures: unknown[] = []
    const { kafka } = await consuming({}, async () => {
      await kafka.clock.advance('1s').catch((e: unknown) => failures.push(e))
      await kafka.clock.settle().catch((e: unknown) => failures.push(e))
    })
    kafka.produce('orders', { value: 'x' })
    await kafka.clock.advance('1m')
    expect(failures).toHaveLength(2)
    expect(failures[0]).toMatchObject({ code: 'RETRYLINE_TESTING' })
    expect(String(failures[0])).toContain('inside a handler (eachMessage of billing at orders/0@0)')
  })

  it('queues two at once', async () => {
    const clock = manual()
    const seen: number[] = []
    clock.after(15, () => void seen.push(clock.monotonic()))
    const first = clock.advance(10).then(() => seen.push(clock.monotonic()))
    const second = clock.advance(10).then(() => seen.push(clock.monotonic()))
    await Promise.all([first, second])
    expect(seen).toEqual([10, 15, 20])
  })

  it('goes on after one that was rejected', async () => {
    const clock = manual(30)
    const work = clock.track(() => 'stuck')
    const first = clock.advance(10)
    const second = first.catch(() => work.done()).then(() => clock.advance(10))
    await expect(first).rejects.toThrow('stuck')
    await second
    expect(clock.monotonic()).toBe(10)
  })

  it('refuses what is not a duration', async () => {
    const clock = manual()
    for (const bad of ['1 minute', 'm', '', '-5s', -1, NaN, '1M']) {
      await expect(clock.advance(bad)).rejects.toMatchObject({ code: 'RETRYLINE_TESTING' })
    }
    await clock.advance('1h30m')
    expect(clock.monotonic()).toBe(5_400_000)
  })
})

describe('rule 6: heartbeats and idle polls are not timers', () => {
  it('passes thirty days in no time, and keeps the members', async () => {
    const { kafka, consumer } = await consuming({}, async () => undefined)
    kafka.produce('orders', { value: 'x' })
    await kafka.clock.settle()
    expect(kafka.clock.timers()).toBe(0)
    const began = process.hrtime.bigint()
    await kafka.clock.advance('30d')
    expect(Number(process.hrtime.bigint() - began) / 1e6).toBeLessThan(500)
    expect(kafka.clock.now()).toBe(START + 30 * 86_400_000)
    expect(kafka.broker.members('billing')).toHaveLength(1)
    const seen = kafka.broker.group('billing')
    kafka.produce('orders', { value: 'y' })
    await kafka.clock.settle()
    expect(kafka.committed('billing', 'orders').get(0)?.offset).toBe(2n)
    expect(kafka.broker.group('billing')).toEqual(seen)
    await consumer.disconnect()
  })

  it('wakes at once after a resume, unless slow polls are asked for', async () => {
    for (const slowPolls of [false, true]) {
      const at: number[] = []
      const { kafka, consumer } = await consuming({ slowPolls }, async () => void at.push(kafka.clock.now() - START))
      consumer.pause([{ topic: 'orders' }])
      await kafka.clock.advance(1)
      kafka.produce('orders', { value: 'x' })
      // Slow: kafkajs has found nothing to fetch and sleeps for maxWaitTimeInMs.
      await kafka.clock.advance('6s')
      consumer.resume([{ topic: 'orders' }])
      await kafka.clock.settle()
      expect(at).toEqual(slowPolls ? [] : [6001])
      await kafka.clock.advance('5s')
      expect(at).toEqual(slowPolls ? [10_000] : [6001])
      const stopping = consumer.disconnect()
      await kafka.clock.advance('5s')
      await stopping
    }
  })
})

describe('rule 7: the real now, and real timers', () => {
  it('starts at the real now unless told', () => {
    const before = Date.now()
    const now = createFakeKafka().clock.now()
    expect(now).toBeGreaterThanOrEqual(before)
    expect(now).toBeLessThanOrEqual(Date.now())
    expect(createFakeKafka({ startAt: new Date(START) }).clock.now()).toBe(START)
    expect(createFakeKafka({ startAt: START }).clock.monotonic()).toBe(0)
  })

  it('works under fake timers of the test framework', async () => {
    vi.useFakeTimers()
    try {
      const seen: string[] = []
      const { kafka, consumer } = await consuming({ stallAfter: 50 }, async () => {
        await kafka.clock.sleep('10s')
        seen.push('handled')
      })
      kafka.produce('orders', { value: 'x' })
      await kafka.clock.advance('10s')
      expect(seen).toEqual(['handled'])
      const work = kafka.clock.track(() => 'stuck')
      await expect(kafka.clock.advance('1s')).rejects.toThrow('stuck')
      work.done()
      await consumer.disconnect()
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('the wall clock', () => {
  it('can jump without the monotonic one; `at` follows the wall, `after` does not', async () => {
    const clock = manual()
    const fired: string[] = []
    clock.at(START + 1000, () => void fired.push(`at@${clock.monotonic()}`))
    clock.after(1000, () => void fired.push(`after@${clock.monotonic()}`))
    clock.jump(-500)
    await clock.advance(1000)
    expect(fired).toEqual(['after@1000'])
    expect(clock.now()).toBe(START + 500)
    clock.jump(400)
    await clock.advance(50)
    expect(fired).toEqual(['after@1000'])
    await clock.advance(50)
    expect(fired).toEqual(['after@1000', 'at@1100'])
  })
})
