/**
 * R80: lost connections as dead letters.
 * Given no rule of the user's.
 * When handlers fail with what a network, an HTTP service or Postgres says when it is down or busy, bare or wrapped in
 * errors of the user's; and with what says that the record itself is bad.
 * Then the first kind is retried and handled once the dependency is back, with nothing on the dead letter topic; the second
 * is there after one call.
 */
import { expect, it } from 'vitest'
import type { Given } from '../contract/promises'
import { header } from '../contract/scene'

const withCode = (code: string): Error => Object.assign(new Error(`it said ${code}`), { code })
/** As pg throws it: these marks tell a SQLSTATE from anybody's five digits. */
const postgres = (code: string): Error =>
  Object.assign(new Error('it said so'), { name: 'error', code, severity: 'ERROR', routine: 'exec', length: 90 })
const withStatus = (status: number): Error => Object.assign(new Error(`it said ${status}`), { status })
const validation = (name: string): Error => Object.assign(new Error('total must be a number'), { name })

const DOWN: readonly (readonly [string, () => unknown])[] = [
  ...['ECONNREFUSED', 'ETIMEDOUT', 'ECONNRESET', 'EPIPE', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'].map(
    (code) => [code, () => withCode(code)] as const,
  ),
  ...[429, 503, 502, 504, 500, 408].map((status) => [`HTTP ${status}`, () => withStatus(status)] as const),
  // Disk full; connection failure; too many connections; admin shutdown; deadlock; serialization failure.
  ...['53100', '08006', '53300', '57P01', '40P01', '40001'].map(
    (code) => [`Postgres ${code}`, () => postgres(code)] as const,
  ),
  ['axios 503', () => Object.assign(new Error('Request failed'), { isAxiosError: true, response: { status: 503 } })],
  ['fetch failed', () => new TypeError('fetch failed', { cause: withCode('ECONNREFUSED') })],
  ['wrapped twice', () => new Error('pay', { cause: new Error('query', { cause: withCode('ECONNREFUSED') }) })],
  ['every address refused', () => new AggregateError([withCode('ECONNREFUSED'), withCode('ETIMEDOUT')], 'all')],
]
const BAD: readonly (readonly [string, () => unknown])[] = [
  ...[400, 422, 401, 403, 404, 409].map((status) => [`HTTP ${status}`, () => withStatus(status)] as const),
  ['SyntaxError', () => new SyntaxError('Unexpected token }')],
  ['TypeError', () => new TypeError('x of undefined')],
  ['RangeError', () => new RangeError('Invalid array length')],
  ['ZodError', () => validation('ZodError')],
  ['ValidationError', () => validation('ValidationError')],
  // A key that is there already; a null that may not be; text that is no number.
  ...['23505', '23502', '22P02'].map((code) => [`Postgres ${code}`, () => postgres(code)] as const),
]

export function r80(given: Given): void {
  it('R80: what is down or busy is retried, and nothing of it becomes a dead letter', async () => {
    const scene = await given.scene({ schedule: ['200ms'] })
    const errors = new Map(DOWN)
    const { hooks } = await scene.join(
      ({ value, attempt }) => {
        if (attempt === 1) throw errors.get(value!)!()
      },
      { unknownErrors: 'dead-letter' },
    )
    await scene.produce(DOWN.map(([name]) => name))
    await scene.untilDone()
    expect((await scene.dead()).map((one) => `${String(one.value)}: ${header(one, 'x-error')}`)).toEqual([])
    expect(hooks.counts.retried).toBe(DOWN.length)
    expect(scene.values(2).sort()).toEqual(DOWN.map(([name]) => name).sort())
  })

  it('R80: what says that the record is bad is not retried', async () => {
    const scene = await given.scene({ schedule: ['200ms'] })
    const errors = new Map(BAD)
    const { hooks } = await scene.join(
      ({ value }) => {
        throw errors.get(value!)!()
      },
      { unknownErrors: 'retry' },
    )
    await scene.produce(BAD.map(([name]) => name))
    await scene.untilDone()
    const dead = await scene.dead()
    expect(dead.map(({ value }) => String(value))).toEqual(BAD.map(([name]) => name))
    for (const one of dead) expect(header(one, 'x-failure-reason'), String(one.value)).toBe('non-retryable')
    expect(hooks.counts.retried).toBe(0)
    expect(scene.calls).toHaveLength(BAD.length)
  })
}
