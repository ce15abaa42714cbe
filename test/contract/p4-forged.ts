import { describe, expect, it } from 'vitest'
import { NonRetryableError, RetryableError } from '../../src'
import type { Given } from './promises'
import { header, type Scene } from './scene'
import type { Bytes, WireRecord } from './wire'

const FAILS = (): never => {
  throw new RetryableError('the shop is closed')
}

type Forged = Readonly<Record<string, Bytes>>

const HUGE = '9'.repeat(500_000)

/** Headers of a record that somebody writes to a retry topic; `{topic}` and `{group}` are ours. */
const ON_RETRY: readonly (readonly [name: string, headers: Forged])[] = [
  ['no headers at all', {}],
  ['a due time in the year 9999', { 'x-due-at': '253402300799000' }],
  ['a negative due time', { 'x-due-at': '-1' }],
  ['a due time that is no number', { 'x-due-at': 'NaN' }],
  ['an empty due time', { 'x-due-at': '' }],
  ['a null due time', { 'x-due-at': null }],
  ['half a megabyte of due time', { 'x-due-at': HUGE }],
  ['a list as due time', { 'x-due-at': '[1,2]' }],
  ['a binary due time', { 'x-due-at': Buffer.from([0, 255, 1, 254]) }],
  ['a due time in exponents', { 'x-due-at': '1e15' }],
  ['a negative attempt', { 'x-attempt': '-5' }],
  ['attempt 0', { 'x-attempt': '0' }],
  ['attempt 1', { 'x-attempt': '1' }],
  ['a billionth attempt', { 'x-attempt': '1000000000' }],
  ['an attempt in exponents', { 'x-attempt': '1e9' }],
  ['an attempt in words', { 'x-attempt': 'abc' }],
  ['a list as attempt', { 'x-attempt': '[1,2]' }],
  ['half a megabyte of attempt', { 'x-attempt': HUGE }],
  ["another team's topic", { 'x-original-topic': 'payroll' }],
  ['a topic of the cluster itself', { 'x-original-topic': '__consumer_offsets' }],
  ['its own retry topic as original', { 'x-original-topic': '{topic}.retry.200ms' }],
  ['a topic name that is none', { 'x-original-topic': '../../etc' }],
  ['a partition that is none', { 'x-original-topic': '{topic}', 'x-original-partition': '-7' }],
  ['a partition far out', { 'x-original-topic': '{topic}', 'x-original-partition': '2147483647' }],
  ['an offset past 2^63', { 'x-original-topic': '{topic}', 'x-original-offset': '99999999999999999999' }],
  ['a history that is none', { 'x-history': '{"a":[[[[' }],
  ['a huge history', { 'x-history': `[${'1,'.repeat(200_000)}1]` }],
  ['first failed in the year 9999', { 'x-first-failed-at': '9999-12-31T23:59:59.999Z' }],
  ['null headers that make no sense', { 'x-null-headers': '[[[]]]' }],
  ['a replay that never was', { 'x-replayed-from-dlq': 'true', 'x-replay-count': '-1' }],
]

const COMPLETE: Forged = {
  'x-attempt': '2',
  'x-due-at': '0',
  'x-original-topic': '{topic}',
  'x-original-partition': '0',
  'x-original-offset': '0',
  'x-original-timestamp': '1',
  'x-consumer-group': '{group}',
}

function record(scene: Scene, value: string, headers: Forged): WireRecord {
  const filled = Object.entries(headers).map(([name, bytes]): readonly [string, Bytes] => [
    name,
    typeof bytes === 'string' ? bytes.replace('{topic}', scene.topic).replace('{group}', scene.group) : bytes,
  ])
  return { value, headers: filled }
}

/** P4: whatever headers say, attempts stay within the schedule, waits within the tier, and topics within the set. */
export function forgedPromises(given: Given): void {
  describe('P4 bounded attempts', () => {
    it.each([
      ['alone', {}],
      ['beside good ones', COMPLETE],
    ] as const)('R33: forged headers on a retry topic, %s', async (_, base) => {
      const scene = await given.scene({ schedule: ['200ms', '400ms'] })
      const member = await scene.join(FAILS, { ordering: 'unordered' })
      const forged = ON_RETRY.map(([name, headers]) => record(scene, name, { ...base, ...headers }))
      for (const one of forged) await given.stage().produce(scene.retry('200ms'), 0, [one])
      const before = given.stage().now()
      await scene.untilDone()
      if (given.stage().kind === 'fake') expect(given.stage().now() - before).toBeLessThan(2_000)

      const dead = (await scene.dead()).map(({ value }) => String(value))
      expect(dead.sort()).toEqual(ON_RETRY.map(([name]) => name).sort())
      for (const [name] of ON_RETRY) {
        const attempts = scene.calls.filter(({ value }) => value === name).map(({ attempt }) => attempt)
        expect(attempts, name).toEqual([...new Set(attempts)].sort())
        expect(Math.max(0, ...attempts), name).toBeLessThanOrEqual(3)
      }
      const places = new Set(member.faults.publishes.flat().map((place) => place.replace(/\/\d+$/, '')))
      expect([...places].sort()).toEqual([scene.dlq, scene.retry('400ms')].sort())
      expect(member.hooks.counts.crashed).toBe(0)
    })

    it('R33: one that cannot be placed is dead-lettered as bad-envelope, without a handler call', async () => {
      const scene = await given.scene()
      await scene.join(FAILS)
      const topics = ['payroll', '__consumer_offsets', '../../etc']
      await given.stage().produce(
        scene.retry('200ms'),
        0,
        topics.map((topic) => record(scene, topic, { ...COMPLETE, 'x-original-topic': topic })),
      )
      await scene.untilDone()
      expect(scene.calls).toHaveLength(0)
      const dead = await scene.dead()
      expect(dead.map(({ value }) => String(value))).toEqual(topics)
      expect(dead.map((one) => header(one, 'x-failure-reason'))).toEqual(topics.map(() => 'bad-envelope'))
      expect(dead.map((one) => header(one, 'x-original-topic'))).toEqual(topics.map(() => scene.topic))
    })

    it('on a main topic they count for nothing: the attempt is 1, the place its own', async () => {
      const scene = await given.scene({ schedule: ['200ms', '400ms'] })
      await scene.join(FAILS)
      const forged = { ...COMPLETE, 'x-attempt': '3', 'x-due-at': '253402300799000', 'x-consumer-group': 'another' }
      await scene.produce([{ value: 'first' }, record(scene, 'forged', { ...forged, 'x-original-topic': 'payroll' })])
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
          record(scene, String(i), { ...COMPLETE, 'x-replayed-from-dlq': 'true', ...headers }),
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
      const records = Array.from({ length: 4_000 }, (_, n) => record(scene, `r${n}`, foreign))
      await given.stage().produce(target, 0, [...records, record(scene, 'ours', COMPLETE)])
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
