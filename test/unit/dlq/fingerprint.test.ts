import { describe, expect, it } from 'vitest'
import { fingerprintOf, normalise } from '../../../src/dlq/fingerprint'
import type { Death } from '../../../src/dlq/original'

const death: Death = {
  group: 'billing',
  errorClass: 'CardError',
  error: 'card 17 of order 0b0f7c3e-8a51-4c0e-9d3f-0a1b2c3d4e5f declined',
  stack:
    'CardError: card 17\n    at check (/srv/app/node_modules/lib/a.js:1:2)\n    at process.x (node:internal/y:5:1)\n' +
    '    at async charge (/srv/app/src/charge.ts:12:7)\n    at run (/srv/app/src/run.ts:3:1)',
  attempt: 4,
}

describe('a fingerprint', () => {
  it('is the same for other ids, other lines and other attempts', () => {
    const other = {
      ...death,
      attempt: 1,
      error: 'card 4 of order 11111111-2222-3333-4444-555555555555 declined',
      stack: death.stack!.replace(':12:7', ':90:1'),
    }
    expect(fingerprintOf(other)).toEqual(fingerprintOf(death))
    expect(fingerprintOf(death)).toMatchObject({
      message: 'card <n> of order <id> declined',
      frame: 'charge (/srv/app/src/charge.ts)',
      group: 'billing',
    })
    expect(fingerprintOf(death).id).toMatch(/^[\da-f]{12}$/)
  })

  it.each([
    { errorClass: 'Other' },
    { error: 'card 17 expired' },
    { group: 'shipping' },
    { stack: death.stack!.replace('charge', 'refund') },
    { errorClass: undefined, error: 'CardError' },
  ])('is another one for %j', (change) => {
    expect(fingerprintOf({ ...death, ...change }).id).not.toBe(fingerprintOf(death).id)
  })

  it('passes over the frames of libraries, of a JVM too', () => {
    const stack =
      'a.Boom: x\n\tat org.springframework.kafka.Listener.run(Listener.java:9)\n\tat java.lang.Thread.run(Thread.java:1)\n' +
      '\tat shop.Charge.card(Charge.java:44)'
    expect(fingerprintOf({ ...death, stack }).frame).toBe('shop.Charge.card(Charge.java)')
    expect(fingerprintOf({ ...death, stack: 'no frames' }).frame).toBeUndefined()
  })
})

describe('a message without what changes', () => {
  it.each([
    ['timeout after 5000 ms', 'timeout after <n> ms'],
    ['no "gold"  plan\nfor \'x\'', 'no <text> plan for <text>'],
    ['GET https://shop.test/a?b=1 failed', 'GET <url> failed'],
    ['mail to a.b@shop.test bounced', 'mail to <address> bounced'],
    ['object 507f1f77bcf86cd799439011 gone', 'object <id> gone'],
    ['a facade defaced', 'a facade defaced'],
  ])('%j', (message, expected) => {
    expect(normalise(message)).toBe(expected)
  })

  it('is bounded', () => {
    expect(normalise('word '.repeat(100_000)).length).toBeLessThanOrEqual(300)
  })
})
