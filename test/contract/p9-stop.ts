import { describe, expect, it } from 'vitest'
import type { StopReport } from '../../src'
import { RetryableError } from '../../src'
import { crashing, lastingFault, passingFault } from './p12-crashing'
import type { Given } from './promises'
import type { Scene } from './scene'

const numbered = (count: number): string[] => Array.from({ length: count }, (_, n) => `r${n}`)

/** P9: stop() at any moment; after it nothing of ours runs, and nothing is lost. */
export function stopPromises(given: Given): void {
  const during = <T>(work: Promise<T>): Promise<T> => given.stage().during(work)

  async function expectGone(scene: Scene): Promise<void> {
    expect(await scene.stage.members(scene.group)).toEqual([])
    for (const delay of scene.schedule) expect(await scene.stage.members(scene.retryGroup(delay))).toEqual([])
  }

  /** A second consumer handles whatever is left; by then the first would have, too, were anything of it alive. */
  async function expectQuiet(scene: Scene, silent: number, callsAtStop: number): Promise<void> {
    await scene.join()
    await scene.untilDone()
    expect(scene.calls.filter(({ member }) => member === silent)).toHaveLength(callsAtStop)
    await during(scene.members.at(-1)!.consumer.stop())
    await expectGone(scene)
  }

  describe('P9 stops well', () => {
    it.each([0, 1, 5, 50, 500])('R58: stop() %i ms after start()', async (ms) => {
      const scene = await given.scene({ partitions: 2 })
      await scene.produce(numbered(20))
      const { consumer } = scene.member()
      const starting = consumer.start().then(
        () => undefined,
        (error: unknown) => error,
      )
      if (ms > 0) await during(given.stage().takes(ms))
      const report = await during(consumer.stop())
      const calls = scene.calls.length
      await expectGone(scene)
      expect(report).toEqual({ abandoned: [], finished: true })
      expect(consumer.health().status).toBe('stopped')
      const error = await during(starting)
      if (error !== undefined) expect(error).toMatchObject({ code: 'RETRYLINE_STATE' })
      await expectQuiet(scene, 0, calls)
    })

    it.each([
      ['that kafkajs restarts after', passingFault],
      ['that kafkajs does not restart after', lastingFault],
    ])('R59: stop() inside the event of a crash %s', async (_, makeError) => {
      const scene = await given.scene()
      const { client, crashNext } = crashing(given.stage().client())
      const { consumer } = scene.member(undefined, { kafka: client })
      await during(consumer.start())
      let stopping: Promise<StopReport> | undefined
      consumer.on('crashed', () => {
        stopping ??= consumer.stop()
      })
      crashNext(makeError(), 100)
      await scene.produce(numbered(5))
      await given.stage().until(() => stopping !== undefined, 'the crash')
      expect(await during(stopping!)).toEqual({ abandoned: [], finished: true })
      expect(consumer.health().status).toBe('stopped')
      crashNext(makeError(), 0)
      await expectQuiet(scene, 0, 0)
    })

    it.each([
      ['that kafkajs restarts after', passingFault],
      ['that kafkajs does not restart after', lastingFault],
    ])('R59: stop() while it waits for the restart after a crash %s', async (_, makeError) => {
      const scene = await given.scene()
      const { client, crashNext } = crashing(given.stage().client())
      const { consumer } = scene.member(undefined, { kafka: client })
      await during(consumer.start())
      crashNext(makeError(), 100)
      await scene.produce(numbered(5))
      await given.stage().until(() => consumer.health().groups.some(({ state }) => state === 'crashed'), 'the crash')
      await during(given.stage().takes(100))
      expect(await during(consumer.stop())).toEqual({ abandoned: [], finished: true })
      crashNext(makeError(), 0)
      await expectQuiet(scene, 0, 0)
    })

    it('R60: stop() awaited inside a handler does not deadlock, and the record counts', async () => {
      const scene = await given.scene()
      const reports: StopReport[] = []
      const { consumer } = await scene.join(async () => {
        reports.push(await consumer.stop())
      })
      await scene.produce(numbered(1))
      await given.stage().until(() => reports.length > 0, 'the inner stop')
      expect(reports[0]).toEqual({ abandoned: [], finished: false })
      expect(await during(consumer.stop())).toEqual({ abandoned: [], finished: true })
      expect((await scene.committed()).get(0)).toBe(1n)
      await expectQuiet(scene, 0, 1)
    })

    it('R60: a handler that never settles is named, left uncommitted, and its record handled by the next', async () => {
      const scene = await given.scene()
      const never = scene.gate()
      const { consumer, hooks } = await scene.join(({ value }) => (value === 'r1' ? never.wait() : undefined))
      await scene.produce(numbered(3))
      await scene.untilCalls(2)
      const signal = scene.calls[1]!.ctx.signal
      const report = await during(consumer.stop({ timeout: '300ms' }))
      const at = { topic: scene.topic, partition: 0, offset: '1' }
      expect(report).toEqual({ abandoned: [at], finished: true })
      expect(signal.aborted).toBe(true)
      expect(hooks.events('abandoned')).toMatchObject([{ ...at, during: 'shutdown' }])
      expect(hooks.events('stopped')).toMatchObject([{ abandoned: [at] }])
      expect((await scene.committed()).get(0)).toBe(1n)

      await expectQuiet(scene, 0, 2)
      expect(scene.values()).toEqual(['r0', 'r1', 'r1', 'r2'])
      never.open()
      await given.stage().until(() => hooks.counts.late === 1, 'the late end is told')
      expect((await scene.committed()).get(0)).toBe(3n)
    })

    it('a handler that heeds its signal ends within the grace, and its record is left to the next', async () => {
      const scene = await given.scene()
      const gate = scene.gate()
      const { consumer } = await scene.join(async ({ ctx }) => {
        ctx.signal.addEventListener('abort', () => gate.open())
        await gate.wait()
        throw new RetryableError('cut short')
      })
      await scene.produce(numbered(1))
      await scene.untilCalls(1)
      expect(await during(consumer.stop({ timeout: '200ms' }))).toEqual({ abandoned: [], finished: true })
      expect((await scene.committed()).get(0)).toBe(0n)
      expect(await given.stage().records(scene.retry('200ms'))).toEqual([])
      await expectQuiet(scene, 0, 1)
    })

    it('twice is once, at the same time and afterwards', async () => {
      const scene = await given.scene()
      const { consumer, hooks } = await scene.join()
      const [first, second] = await during(Promise.all([consumer.stop(), consumer.stop({ timeout: 0 })]))
      expect(second).toBe(first)
      expect(await consumer.stop()).toBe(first)
      expect(hooks.counts.stopped).toBe(1)
      await expect(consumer.start()).rejects.toMatchObject({ code: 'RETRYLINE_STATE' })
    })

    it('before a start it stops at once, and nothing can be started any more', async () => {
      const scene = await given.scene()
      const { consumer } = scene.member()
      expect(await consumer.stop()).toEqual({ abandoned: [], finished: true })
      await expect(consumer.start()).rejects.toThrow(/stopped already; make a new consumer/)
    })

    it('an async disposable stops', async () => {
      const scene = await given.scene()
      const { consumer } = await scene.join()
      await during(Promise.resolve(consumer[Symbol.asyncDispose]()))
      expect(consumer.health().status).toBe('stopped')
      await expectGone(scene)
    })

    it('a copy that cannot be published holds up the stop only until its time-out, and is not lost', async () => {
      const scene = await given.scene()
      const { consumer, faults } = await scene.join(() => {
        throw new RetryableError('not now')
      })
      const fault = faults.publish('reject')
      await scene.produce(numbered(1))
      await given.stage().until(() => fault.hits > 0, 'a refused publish')
      expect(await during(consumer.stop({ timeout: '500ms' }))).toMatchObject({ finished: true })
      expect((await scene.committed()).get(0)).toBe(0n)
      await expectQuiet(scene, 0, 1)
    })

    it('a stop during a join waits for it; past its time-out it says so and finishes in the background', async () => {
      const scene = await given.scene()
      await scene.produce(numbered(3))
      // A plain kafkajs member that is busy in its handler answers no rebalance: ours waits for it in its join.
      const busy = scene.gate()
      let calls = 0
      const plain = (given.stage().client() as any).consumer({
        groupId: scene.group,
        sessionTimeout: 60_000,
        rebalanceTimeout: 60_000,
        heartbeatInterval: 200,
        maxWaitTimeInMs: 100,
      })
      await during(plain.connect())
      await during(plain.subscribe({ topic: scene.topic, fromBeginning: true }))
      await during(
        plain.run({
          eachMessage: async () => {
            calls++
            await busy.wait()
          },
        }),
      )
      await given.stage().until(() => calls > 0, 'the plain member is busy')
      const { consumer } = scene.member()
      const starting = consumer.start().catch((error: unknown) => error)
      await given
        .stage()
        .until(() => consumer.health().groups.some(({ state }) => state === 'ok'), 'its tier has joined')
      expect(await during(consumer.stop({ timeout: '300ms' }))).toEqual({ abandoned: [], finished: false })
      expect(await during(starting)).toMatchObject({ code: 'RETRYLINE_STATE' })
      busy.open()
      await given.stage().until(() => consumer.health().status === 'stopped', 'the stop has finished')
      await given
        .stage()
        .until(async () => (await scene.stage.members(scene.group)).length === 1, 'only the plain member')
      await during(plain.disconnect())
      await expectGone(scene)
      expect(scene.calls).toEqual([])
    })

    it('a start that fails leaves nothing behind', async () => {
      const scene = await given.scene()
      const wrong = scene.member(undefined, {
        topic: [scene.topic, given.stage().unique('typo')],
        sameGroupInProcess: 'refuse',
      })
      await expect(during(wrong.consumer.start())).rejects.toMatchObject({ code: 'RETRYLINE_TOPICS' })
      expect(wrong.consumer.health().status).toBe('stopped')
      await expectGone(scene)
      // Its group is free again for the next.
      await scene.join(undefined, { sameGroupInProcess: 'refuse' })
    })
  })
}
