/**
 * R33: retry headers from outside.
 * Given records that somebody else writes to a retry topic, with due times, attempts and places that are wrong, absurd,
 * binary, huge or missing, alone or beside good ones.
 * When they are read, and their handler fails.
 * Then each has at most as many attempts as the schedule allows and ends on our dead letter topic; none waits longer than
 * its tier; nothing is ever sent to a topic that a header names.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import { COMPLETE, forgedRecord, type Forged } from '../contract/forged'
import type { Given } from '../contract/promises'
import { header } from '../contract/scene'

const FAILS = (): never => {
  throw new RetryableError('the shop is closed')
}

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

export function r33(given: Given): void {
  it.each([
    ['alone', {}],
    ['beside good ones', COMPLETE],
  ] as const)('R33 P4: forged headers on a retry topic, %s', async (_, base) => {
    const scene = await given.scene({ schedule: ['200ms', '400ms'] })
    const member = await scene.join(FAILS, { ordering: 'unordered' })
    const forged = ON_RETRY.map(([name, headers]) => forgedRecord(scene, name, { ...base, ...headers }))
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

  it('R33 P4: one that cannot be placed is dead-lettered as bad-envelope, without a handler call', async () => {
    const scene = await given.scene()
    await scene.join(FAILS)
    const topics = ['payroll', '__consumer_offsets', '../../etc']
    await given.stage().produce(
      scene.retry('200ms'),
      0,
      topics.map((topic) => forgedRecord(scene, topic, { ...COMPLETE, 'x-original-topic': topic })),
    )
    await scene.untilDone()
    expect(scene.calls).toHaveLength(0)
    const dead = await scene.dead()
    expect(dead.map(({ value }) => String(value))).toEqual(topics)
    expect(dead.map((one) => header(one, 'x-failure-reason'))).toEqual(topics.map(() => 'bad-envelope'))
    expect(dead.map((one) => header(one, 'x-original-topic'))).toEqual(topics.map(() => scene.topic))
  })
}
