/**
 * R15: null header values.
 * Given a record of another producer whose headers are null, a value and null under one name, and empty.
 * When its handler fails until the end: kafkajs reads such headers and cannot write them.
 * Then it stands on the retry topic and on the dead letter topic once: null travels as empty, its name in
 * `x-null-headers`, and the handler gets null again; nothing is delivered without end.
 */
import { expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from '../contract/promises'
import { header, headersNamed } from '../contract/scene'

export function r15(given: Given): void {
  it('R15 P3: a record with null headers is retried and dead-lettered like any other', async () => {
    const scene = await given.scene()
    const seen: unknown[] = []
    const member = await scene.join(({ value, payload }) => {
      if (value === 'behind') return
      const { a, b, c } = payload.message.headers
      const asText = (one: unknown): unknown => (Buffer.isBuffer(one) ? one.toString() : one)
      seen.push([asText(a), Array.isArray(b) ? b.map(asText) : asText(b), asText(c)])
      throw new RetryableError('the shop is closed')
    })
    await scene.produce([
      {
        value: 'odd',
        headers: [
          ['a', null],
          ['b', 'x'],
          ['b', null],
          ['c', ''],
        ],
      },
      'behind',
    ])
    await scene.untilDone()
    expect(scene.values()).toEqual(['odd', 'behind', 'odd'])
    expect(seen[1]).toEqual(seen[0])
    expect(seen[0]).toEqual([null, ['x', null], ''])
    for (const topic of [scene.retry('200ms'), scene.dlq]) {
      const copies = await given.stage().records(topic)
      expect(copies.map(({ value }) => String(value))).toEqual(['odd'])
      const texts = (name: string): string[] => headersNamed(copies[0]!, name).map(String)
      expect([texts('a'), texts('b'), texts('c')]).toEqual([[''], ['x', ''], ['']])
      expect(header(copies[0]!, 'x-null-headers')).toContain('a')
    }
    expect(member.hooks.counts.publishFailed + member.hooks.counts.crashed).toBe(0)
  })
}
