/**
 * R43: dead after an error that nobody retries.
 * Given a handler that fails with what kafkajs never retries (a TypeError, a RangeError) and with what is no error at all
 * (undefined, text, a frozen object, a thenable that rejects), on the main topic and again on a retry topic.
 * When these records come, each with a good one behind it; or when the kafkajs consumer itself dies of such an error.
 * Then each is judged and stands once on the dead letter topic, every good one was handled, nothing reached kafkajs, and
 * the health is ok. A consumer that died says so until it has read again, and comes back by itself.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import { crashing, lastingFault } from '../contract/p12-crashing'
import type { Given } from '../contract/promises'
import { header } from '../contract/scene'

const rejected = (reason: unknown) => Promise.reject(reason)

/** How a handler may fail, by name; none of these returns. */
const WAYS: Readonly<Record<string, () => unknown>> = {
  'throws a TypeError': () => (undefined as unknown as { x: { y: number } }).x.y,
  'throws a RangeError': () => new Array(-1),
  'throws undefined': () => {
    throw undefined
  },
  'throws text': () => {
    throw 'just text'
  },
  'throws a frozen object': () => {
    throw Object.freeze({ message: 'frozen' })
  },
  'rejects with a SyntaxError': async () => JSON.parse('{') as unknown,
  'rejects with undefined': () => rejected(undefined),
  'rejects with a number': () => rejected(404),
  'rejects with a frozen error': () => rejected(Object.freeze(new Error('frozen'))),
  'returns a thenable that rejects': () => ({ then: (_: unknown, no: (reason: unknown) => void) => no('a thenable') }),
  'returns something whose then throws': () => ({
    get then(): never {
      throw new TypeError('no then')
    },
  }),
}
const NAMES = Object.keys(WAYS)

export function r43(given: Given): void {
  it('R43 P12: nothing that a handler fails with reaches kafkajs', async () => {
    const scene = await given.scene({ schedule: ['200ms'] })
    const { consumer, hooks } = await scene.join(
      ({ value, attempt }) => {
        const [where, name = ''] = String(value).split(': ')
        if (where === 'good') return undefined
        if (where === 'tier' && attempt === 1) throw new RetryableError('to the retry topic first')
        return WAYS[name]!()
      },
      { unknownErrors: 'dead-letter' },
    )
    await scene.produce(NAMES.flatMap((name) => [`main: ${name}`, `good: ${name}`, `tier: ${name}`]))
    await scene.untilDone()
    const dead = await scene.dead()
    expect(dead.map(({ value }) => String(value)).sort()).toEqual(
      NAMES.flatMap((name) => [`main: ${name}`, `tier: ${name}`]).sort(),
    )
    for (const one of dead) {
      expect(header(one, 'x-failure-reason'), String(one.value)).toMatch(/^(non-retryable|unclassified)$/)
      expect(header(one, 'x-error-class'), String(one.value)).toBeTruthy()
      expect(header(one, 'x-attempt')).toBe(String(one.value).startsWith('tier') ? '2' : '1')
    }
    for (const { outcome, because } of hooks.events('attempt')) expect(because !== undefined).toBe(outcome !== 'ok')
    expect(scene.values().filter((value) => value?.startsWith('good'))).toHaveLength(NAMES.length)
    expect(scene.calls).toHaveLength(4 * NAMES.length)
    expect(hooks.counts.crashed).toBe(0)
    expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })
  })

  it('R43 P12: the consumer itself dies twice, is unwell until it reads again, and comes back', async () => {
    const scene = await given.scene({ schedule: [] })
    const { client, crashNext } = crashing(given.stage().client())
    const { consumer, hooks } = scene.member(undefined, { kafka: client })
    const atJoin: string[] = []
    consumer.on('rebalanced', ({ tier }) => {
      if (hooks.counts.crashed > 0) atJoin.push(`${tier} ${consumer.health().groups[0]?.state}`)
    })
    await given.stage().during(consumer.start())
    crashNext(lastingFault(), 2)
    await scene.produce(['a', 'b'])
    await scene.untilDone()
    expect(scene.values()).toEqual(['a', 'b'])
    expect(hooks.events('crashed').map(({ restarting }) => restarting)).toEqual([true, true])
    // It has joined, and may die of the same at its first fetch: that is not well.
    expect(atJoin).toEqual(['main crashed', 'main crashed'])
    expect(consumer.health()).toMatchObject({ status: 'ok', problems: [] })
  })
}
