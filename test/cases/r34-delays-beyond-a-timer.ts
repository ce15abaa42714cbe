/**
 * R34: a delay longer than a timer.
 * Given a schedule of thirty days, and a record whose due time a header puts sixty days out: a Node timer past 2^31-1 ms
 * fires at once.
 * When time passes, to the last millisecond before the record is due.
 * Then it is not handled before, it is handled then, and meanwhile nothing runs but one timer now and then.
 */
import { createHook } from 'node:async_hooks'
import { expect, it } from 'vitest'
import { createResilientConsumer, memoryHooks, RetryableError } from '../../src'
import { systemClock } from '../../src/ports'
import { createFakeKafka } from '../../src/testing'

const DAY = 86_400_000
const nothing = (): void => undefined
const logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

/** Not told to a stage: days pass here. */
export function r34(): void {
  /** A consumer with one wait of thirty days, and when its handler was called. */
  async function monthly() {
    const kafka = createFakeKafka({ topics: { orders: 1, 'orders.retry.30d': 1, 'orders.dlq': 1 } })
    const starts: number[] = []
    const hooks = memoryHooks()
    const consumer = createResilientConsumer({
      kafka,
      groupId: 'billing',
      topic: 'orders',
      schedule: ['30d'],
      topicSetup: 'warn',
      logger,
      hooks,
      handler: (_, ctx) => {
        starts.push(kafka.clock.now())
        if (ctx.attempt === 1) throw new RetryableError('not now')
      },
    })
    await consumer.start()
    return { kafka, consumer, hooks, starts }
  }

  it('R34 P8: a schedule of 30 days is held for 30 days, and not a moment less', async () => {
    const { kafka, consumer, starts } = await monthly()
    kafka.produce('orders', { value: 'a' })
    await kafka.clock.advance('1m')
    expect(starts).toHaveLength(1)
    const [copy] = kafka.records('orders.retry.30d')
    const dueAt = Number(String(copy?.headers.find(([name]) => name === 'x-due-at')?.[1]))
    expect(dueAt - starts[0]!).toBeGreaterThanOrEqual(30 * DAY)
    await kafka.clock.advance(dueAt - kafka.clock.now() - 1)
    expect(starts).toHaveLength(1)
    expect(consumer.health().groups[1]?.partitions[0]).toMatchObject({ state: 'waiting', nextDueAt: dueAt })
    await kafka.clock.advance(1)
    expect(starts).toEqual([starts[0], dueAt])
    await consumer.stop()
  })

  it('R34 P4 P8: a due time 60 days out is cut down to the 30 of its tier, and comes neither early nor late', async () => {
    const { kafka, consumer, hooks, starts } = await monthly()
    const at = kafka.clock.now()
    const headers = { 'x-attempt': '2', 'x-due-at': String(at + 60 * DAY), 'x-original-topic': 'orders' }
    kafka.produce('orders.retry.30d', { value: 'a', headers: Object.entries(headers) })
    await kafka.clock.advance(30 * DAY - 1)
    expect(starts).toEqual([])
    await kafka.clock.advance(60_000)
    expect(starts).toHaveLength(1)
    expect(starts[0]! - at).toBeGreaterThanOrEqual(30 * DAY)
    expect(hooks.events('envelope')).toHaveLength(1)
    await consumer.stop()
  })

  it('R34 P8: the system clock does not fire at once where a Node timer would', async () => {
    const early: string[] = []
    const timers = [
      systemClock.after(2 ** 31 + DAY, () => early.push('after')),
      systemClock.at(Date.now() + 2 ** 31 + DAY, () => early.push('at')),
    ]
    // An overlong Node timer fires after a millisecond.
    await new Promise<void>((resolve) => systemClock.after(50, resolve))
    for (const timer of timers) timer.cancel()
    expect(early).toEqual([])
  })

  it('R34 P8: one timer stands for a long wait, and no others are set meanwhile', async () => {
    let made = 0
    const hook = createHook({
      init(_, type) {
        if (type === 'Timeout') made++
      },
    })
    const timers = [systemClock.after(30 * DAY, nothing), systemClock.at(Date.now() + 30 * DAY, nothing)]
    await new Promise<void>((resolve) => {
      systemClock.after(50, resolve)
      hook.enable()
    })
    hook.disable()
    for (const timer of timers) timer.cancel()
    expect(made).toBe(0)
  })
}
