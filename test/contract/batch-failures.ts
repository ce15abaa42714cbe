import { describe, expect, it } from 'vitest'
import { NonRetryableError, RetryableError, outage, type RetrylineError } from '../../src'
import { Batching, named, type BatchSeen } from './batching'
import { COMPLETE, forgedRecord } from './forged'
import type { Given } from './promises'
import { header, type Scene } from './scene'

export const numbered = (to: number, from = 0): string[] =>
  Array.from({ length: to - from }, (_, n) => `r${String(from + n).padStart(3, '0')}`)

/** P1, P4: what fails of a batch, and nothing else of it, is retried or dead-lettered. */
export function batchFailures(given: Given): void {
  const deadValues = async (scene: Scene): Promise<string[]> =>
    (await scene.dead()).map(({ value }) => String(value)).sort()
  const retriedValues = async (scene: Scene, delay = '200ms'): Promise<string[]> =>
    (await given.stage().records(scene.retry(delay))).map(({ value }) => String(value)).sort()

  /** Records that are there before the first member, so that they come together. */
  async function open(count: number, options: Parameters<Given['scene']>[0] = {}) {
    const scene = await given.scene(options)
    await scene.produce(numbered(count))
    return { scene, batching: new Batching(scene) }
  }

  describe('batch: what has failed', () => {
    it('each record that was named is judged by its own error, and the others are done', async () => {
      const { scene, batching } = await open(30)
      const member = await batching.join((call) => {
        if (call.topic !== scene.topic) return
        const [poison, busy] = [named(call, 'r003'), named(call, 'r007')]
        if (poison) call.ctx.fail(poison, new NonRetryableError('no such customer'))
        // By its index, as a bulk insert tells.
        if (busy) call.ctx.fail(call.messages.indexOf(busy), new RetryableError('busy'))
        // The first word counts.
        if (poison) call.ctx.fail(poison, new RetryableError('busy'))
      })
      await scene.untilDone()
      expect(await deadValues(scene)).toEqual(['r003'])
      expect(header((await scene.dead())[0]!, 'x-error')).toContain('no such customer')
      expect(await retriedValues(scene)).toEqual(['r007'])
      const seen = batching.values(scene.topic)
      expect(seen).toEqual(numbered(30))
      const [retry] = batching.seen.filter(({ topic }) => topic !== scene.topic)
      expect(retry?.messages).toMatchObject([{ attempt: 2, topic: scene.topic, partition: 0, offset: '7' }])
      expect(retry?.messages[0]?.firstFailedAt).toBeInstanceOf(Date)
      expect(retry?.batch.topic).toBe(scene.topic)
      const outcomes = member.hooks.events('attempt').map(({ offset, outcome }) => `${offset} ${outcome}`)
      expect(outcomes.slice(0, 30)).toEqual(
        numbered(30).map((_, n) => `${n} ${n === 3 ? 'dead-letter' : n === 7 ? 'retry' : 'ok'}`),
      )
      scene.expectNoStepBack()
    })

    it('a plain throw that is worth a retry sends all of it to the tier, where they come together', async () => {
      const { scene, batching } = await open(20)
      await batching.join(({ topic }) => {
        if (topic === scene.topic) throw new RetryableError('busy')
      })
      await scene.untilDone()
      expect(await scene.dead()).toEqual([])
      expect(await retriedValues(scene)).toEqual(numbered(20))
      expect(batching.values(scene.retry('200ms')).sort()).toEqual(numbered(20))
      // Nothing before it is due, and all that are due.
      for (const { messages, startedAt } of batching.seen) {
        for (const { dueAt = 0 } of messages) expect(startedAt).toBeGreaterThanOrEqual(dueAt)
      }
      // Each of them is a retry, and not only the first of its call.
      const retries = batching.seen.filter(({ topic }) => topic !== scene.topic).flatMap(({ messages }) => messages)
      for (const message of retries) {
        expect(message).toMatchObject({ topic: scene.topic, attempt: 2, dueAt: expect.any(Number) as number })
      }
      if (given.stage().kind === 'fake') expect(batching.sizes(scene.retry('200ms'))).toEqual([20])
    })

    it.each([
      { name: 'hopeless', make: () => new NonRetryableError('a bad order') },
      { name: 'at its last attempt', make: () => new RetryableError('busy') },
    ])('a plain throw, $name: halves find the one that fails, and only that is dead', async ({ make }) => {
      const { scene, batching } = await open(16, { schedule: [] })
      await batching.join((call) => {
        if (named(call, 'r005')) throw make()
      })
      await scene.produce(['behind'])
      await scene.untilDone()
      expect(await deadValues(scene)).toEqual(['r005'])
      expect([...new Set(batching.values())].sort()).toEqual(['behind', ...numbered(16)])
      // 16, then 8, 4, 2, 1 for the bad one, and once more each of the other halves; what came later has no part in it.
      const around = batching.seen.filter(({ values }) => !values.includes('behind'))
      if (given.stage().kind === 'fake') {
        expect(around.map(({ values }) => values.length)).toEqual([16, 8, 4, 4, 2, 1, 1, 2, 8])
      }
      for (const value of numbered(16)) {
        expect(batching.values().filter((seen) => seen === value).length, value).toBeLessThanOrEqual(5)
      }
      scene.expectNoStepBack()
    })

    it('what was named keeps its own error where the rest is thrown', async () => {
      const { scene, batching } = await open(8)
      await batching.join((call) => {
        const bad = named(call, 'r002')
        if (bad) call.ctx.fail(bad, new NonRetryableError('a bad order'))
        if (call.topic === scene.topic) throw new RetryableError('busy')
      })
      await scene.untilDone()
      expect(await deadValues(scene)).toEqual(['r002'])
      expect(await retriedValues(scene)).toEqual(numbered(8).filter((value) => value !== 'r002'))
    })

    it('a record that is not of the batch cannot be named, and nothing counts as done for it', async () => {
      const { scene, batching } = await open(5)
      const thrown: RetrylineError[] = []
      let isBad = true
      const member = await batching.join(
        ({ ctx, messages }) => {
          if (!isBad) return
          isBad = false
          for (const wrong of [{ ...messages[0]! }, messages.length, -1, 0.5, undefined as never]) {
            try {
              ctx.fail(wrong, new Error('lost'))
            } catch (error) {
              // A handler that goes on as if nothing had happened.
              thrown.push(error as RetrylineError)
            }
          }
        },
        { batch: { maxRecords: 5 } },
      )
      await scene.untilDone()
      expect(new Set(thrown.map(({ code }) => code))).toEqual(new Set(['RETRYLINE_STATE']))
      expect(thrown).toHaveLength(5)
      expect(thrown[0]!.message).toMatch(/is not in this batch; give one of its messages as it is, or an index from 0/)
      // All of that call were tried again.
      const [first] = batching.seen
      expect(await retriedValues(scene)).toEqual([...first!.values].sort())
      expect(member.hooks.counts.problem).toBe(0)
      expect(() => first!.ctx.fail(0, new Error('late'))).toThrow(/had ended/)
      expect(() => first!.ctx.send({ topic: 'audit', value: 'late' })).toThrow(/had ended/)
    })

    it('what cannot be decoded is dead by itself, and the handler never sees it', async () => {
      const scene = await given.scene()
      const batching = new Batching(scene)
      await scene.produce(['1', '2', '{', '4', '!', '6'])
      await batching.join(undefined, { decode: 'json' })
      await scene.untilDone()
      expect(await deadValues(scene)).toEqual(['!', '{'])
      expect((await scene.dead()).map((record) => header(record, 'x-failure-reason'))).toEqual(
        Array(2).fill('undecodable'),
      )
      expect(batching.seen.flatMap(({ messages }) => messages.map(({ decoded }) => decoded))).toEqual([1, 2, 4, 6])
    })

    it('a tier: forged headers are dead, another group is passed over, and neither is given to the handler', async () => {
      const scene = await given.scene()
      const batching = new Batching(scene)
      await given
        .stage()
        .produce(scene.retry('200ms'), 0, [
          forgedRecord(scene, 'good 1', COMPLETE),
          forgedRecord(scene, 'forged', { ...COMPLETE, 'x-attempt': 'many' }),
          forgedRecord(scene, 'foreign', { ...COMPLETE, 'x-consumer-group': 'others' }),
          forgedRecord(scene, 'good 2', COMPLETE),
        ])
      await batching.join()
      await scene.untilDone()
      expect(batching.values()).toEqual(expect.arrayContaining(['good 1', 'good 2']))
      expect(batching.values()).not.toContain('foreign')
    })

    it('a dependency that is down: what was in the call waits, uncommitted, and one call counts once', async () => {
      const { scene, batching } = await open(40)
      let isDown = true
      const act = async (): Promise<void> => {
        await given.stage().takes(2)
        if (isDown) throw outage('the warehouse')
      }
      const options = { batch: { maxRecords: 10 }, outage: { failures: 2, within: '10s', probe: '50ms' } }
      const member = await batching.join(act, options)
      const isHeld = (): boolean => member.consumer.health().status === 'held'
      await given.stage().until(isHeld, 'it is held')
      expect(member.hooks.events('held')).toMatchObject([{ dependency: 'the warehouse', failures: 2 }])
      const before = batching.sizes().length
      await given.stage().until(() => batching.sizes().length >= before + 2, 'it probes')
      // One record at a time.
      expect(new Set(batching.sizes().slice(before))).toEqual(new Set([1]))
      isDown = false
      await scene.untilDone()
      expect(await scene.dead()).toEqual([])
      // The first call's, before it counted as down.
      expect((await retriedValues(scene)).length).toBeLessThanOrEqual(10)
      expect([...new Set(batching.values())].sort()).toEqual(numbered(40))
    })

    it('deadLetterLimit stops in the middle of a batch, and loses none of it', async () => {
      const { scene, batching } = await open(40, { schedule: [] })
      let isBad = true
      const act = ({ ctx, messages }: BatchSeen): void => {
        if (isBad) for (const message of messages) ctx.fail(message, new NonRetryableError('a bad deploy'))
      }
      const member = await batching.join(act, { deadLetterLimit: { share: 0.5, burst: 10 } })
      await given.stage().until(() => member.hooks.counts.halted === 1, 'it has halted')
      await scene.untilDead(10)
      isBad = false
      member.consumer.resume()
      await scene.untilDone()
      expect(await deadValues(scene)).toEqual(numbered(10))
      expect([...new Set(batching.values())].sort()).toEqual(numbered(40))
    })
  })
}
