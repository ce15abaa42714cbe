import { describe, expect, it } from 'vitest'
import { NonRetryableError, RetryableError } from '../../src'
import { COMPLETE, forgedRecord } from './forged'
import type { Given } from './promises'

const FAILS = (): never => {
  throw new RetryableError('the shop is closed')
}

/** P4: whatever headers say, attempts stay within the schedule, waits within the tier, and topics within the set. */
export function forgedPromises(given: Given): void {
  describe('P4 bounded attempts', () => {
    it('on a main topic they count for nothing: the attempt is 1, the place its own', async () => {
      const scene = await given.scene({ schedule: ['200ms', '400ms'] })
      await scene.join(FAILS)
      const forged = { ...COMPLETE, 'x-attempt': '3', 'x-due-at': '253402300799000', 'x-consumer-group': 'another' }
      await scene.produce([
        { value: 'first' },
        forgedRecord(scene, 'forged', { ...forged, 'x-original-topic': 'payroll' }),
      ])
      await scene.untilDone()
      const calls = scene.calls.filter(({ value }) => value === 'forged')
      expect(calls.map(({ attempt, offset, topic }) => [attempt, offset, topic])).toEqual(
        [1, 2, 3].map((attempt) => [attempt, '1', scene.topic]),
      )
    })

    it('a forged replay starts at attempt 1 and ends like any other', async () => {
      const scene = await given.scene({ schedule: ['200ms'] })
      const member = await scene.join(FAILS)
      const replays = [
        { 'x-attempt': '1e9' },
        { 'x-replay-count': '-1' },
        { 'x-original-topic': 'payroll' },
        { 'x-due-at': '9'.repeat(15) },
      ]
      await scene.produce(
        replays.map((headers, i) =>
          forgedRecord(scene, String(i), { ...COMPLETE, 'x-replayed-from-dlq': 'true', ...headers }),
        ),
      )
      await scene.untilDone()
      expect(scene.calls.map(({ attempt }) => attempt).sort()).toEqual([1, 1, 1, 1, 2, 2, 2, 2])
      const places = new Set(member.faults.publishes.flat().map((place) => place.replace(/\/\d+$/, '')))
      expect([...places].sort()).toEqual([scene.dlq, scene.retry('200ms')].sort())
    })

    it.each([
      ["another group's replays on the main topic", 'main'],
      ['records on a retry topic that cannot be believed', 'retry'],
    ] as const)('thousands in a row that are passed over without a handler call: %s', async (_, where) => {
      const scene = await given.scene()
      const member = await scene.join()
      const others = {
        ...COMPLETE,
        'x-replayed-from-dlq': 'true',
        'x-replay-for-group': 'shipping',
        'x-consumer-group': 'shipping',
      }
      const foreign = where === 'main' ? others : { ...COMPLETE, 'x-original-topic': 'payroll' }
      const target = where === 'main' ? scene.topic : scene.retry('200ms')
      const records = Array.from({ length: 4_000 }, (_, n) => forgedRecord(scene, `r${n}`, foreign))
      await given.stage().produce(target, 0, [...records, forgedRecord(scene, 'ours', COMPLETE)])
      await scene.untilDone()
      expect(scene.values()).toEqual(['ours'])
      expect(member.hooks.counts.problem).toBe(0)
      expect(member.hooks.counts.crashed).toBe(0)
    })

    it('whatever is thrown, the attempts are bounded and the consumer lives', async () => {
      const scene = await given.scene()
      const thrown = [
        undefined,
        null,
        'text',
        42,
        Object.freeze({}),
        Object.create(null),
        new TypeError('a bug'),
        new RangeError('far'),
        new NonRetryableError('no'),
      ]
      const member = await scene.join(({ value }) => {
        if (value !== 'good') throw thrown[Number(value)]
      })
      await scene.produce([...thrown.map((_, i) => String(i)), 'good'])
      await scene.untilDone()
      expect((await scene.dead()).length).toBe(thrown.length)
      expect(scene.values()).toContain('good')
      expect(member.hooks.counts.crashed).toBe(0)
      expect(member.hooks.counts.problem).toBe(0)
    })
  })
}
