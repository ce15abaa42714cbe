/**
 * R75: a trace lost or doubled.
 * Given a record with `traceparent`, `tracestate` and `b3`, and three waits.
 * When it fails at every attempt, is replayed by hand, and fails at every attempt again.
 * Then on every topic it passes, and for the handler at every attempt, there is exactly one of each, unchanged.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { headersNamed } from '../contract/scene'

const TRACE = [
  ['traceparent', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'],
  ['tracestate', 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7'],
  ['b3', '80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1-05e3ac9a4f6e3b90'],
] as const

export function r75(given: Given): void {
  it('R75 P3: exactly one of each, unchanged, across three tiers and a replay', async () => {
    const schedule = ['200ms', '300ms', '400ms']
    const scene = await given.scene({ schedule })
    const seen: unknown[] = []
    await scene.join(({ payload }) => {
      seen.push(TRACE.map(([name]) => payload.message.headers[name]))
      throw new RetryableError('not now')
    })
    await scene.produce([{ value: 'a', headers: TRACE }])
    await scene.untilDead(1)
    await scene.untilDone()
    const [letter] = await scene.dead()
    const said = [
      ['x-replayed-from-dlq', 'true'],
      ['x-replay-for-group', scene.group],
    ] as const
    await scene.produce([{ value: letter!.value, headers: [...letter!.headers, ...said] }])
    await scene.untilDead(2)
    for (const topic of [...schedule.map((delay) => scene.retry(delay)), scene.dlq]) {
      const copies = await given.stage().records(topic)
      expect(copies, topic).toHaveLength(2)
      for (const copy of copies) {
        for (const [name, value] of TRACE)
          expect(headersNamed(copy, name).map(String), `${name} on ${topic}`).toEqual([value])
      }
    }
    expect(seen).toEqual(Array.from({ length: 8 }, () => TRACE.map(([, value]) => Buffer.from(value))))
  })
}
