import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createClassifier } from '../../../src/classify'
import { createDecoder } from '../../../src/consume/decode'
import type { Decoded } from '../../../src/consume/decode'
import { RetryableError, isRetrylineError } from '../../../src/errors'

type Options = Parameters<typeof createDecoder>[0]

const info = { topic: 'orders', partition: 0, key: null, headers: {} }
const bytes = (text: string): Buffer => Buffer.from(text)

function decode(options: Options, value: Buffer | null): Decoded | Promise<Decoded> {
  const decoder = createDecoder(options)
  if (!decoder) throw new Error('there is no decoder')
  return decoder(value, info)
}

async function refusal(options: Options, value: Buffer | null): Promise<string> {
  const decoded = await decode(options, value)
  if (decoded.ok) return expect.fail('was decoded')
  expect(isRetrylineError(decoded.error, 'RETRYLINE_UNDECODABLE')).toBe(true)
  expect(decoded.error.message.length).toBeLessThan(1000)
  return decoded.error.message
}

test('nothing asked for: no decoder', () => {
  expect(createDecoder({})).toBeUndefined()
})

describe('json', () => {
  const json: Options = { decode: 'json' }

  test('decodes, without a promise', () => {
    expect(decode(json, bytes('{"id":"é"}'))).toEqual({ ok: true, value: { id: 'é' } })
    expect(decode(json, bytes('\uFEFF[1]'))).toEqual({ ok: true, value: [1] })
  })

  test('a tombstone is null', () => {
    expect(decode(json, null)).toEqual({ ok: true, value: null })
  })

  test('P13: what is no JSON is told without its payload', async () => {
    expect(await refusal(json, bytes('secret'))).toBe('the value (6 bytes) is not JSON')
    expect(await refusal(json, bytes('{"card": 4111,}'))).toMatch(
      /^the value \(15 bytes\) is not JSON(, at position 14)?$/,
    )
    expect(await refusal(json, Buffer.alloc(0))).toBe('the value is empty, which is not JSON')
    expect(await refusal(json, Buffer.from([0x22, 0xff, 0x22]))).toBe(
      'the value (3 bytes) is not valid UTF-8, so it is not JSON',
    )
  })
})

describe('a function', () => {
  test('gets the bytes and where they stand, tombstones included', async () => {
    const seen: unknown[] = []
    const options: Options = { decode: (...args) => seen.push(args) }
    expect(decode(options, bytes('a'))).toEqual({ ok: true, value: 1 })
    expect(decode(options, null)).toEqual({ ok: true, value: 2 })
    expect(seen).toEqual([
      [bytes('a'), info],
      [null, info],
    ])
    expect(await decode({ decode: () => Promise.resolve(7) }, null)).toEqual({ ok: true, value: 7 })
    expect(decode({ decode: () => undefined }, null)).toEqual({ ok: true, value: undefined })
  })

  test('what it throws, or rejects with, is the cause', async () => {
    const error = new TypeError('no such schema id')
    const thrown: Options = {
      decode: () => {
        throw error
      },
    }
    for (const options of [thrown, { decode: () => Promise.reject(error) }]) {
      expect(await refusal(options, null)).toBe('decode threw TypeError: no such schema id')
      expect(await decode(options, null)).toMatchObject({ error: { cause: error } })
    }
    expect(await refusal({ decode: () => Promise.reject(new Error('x'.repeat(5000))) }, null)).toHaveLength(220)
    const parse: Options = { decode: (value) => JSON.parse(String(value)) as unknown }
    expect(await refusal(parse, bytes('secret'))).toBe('decode threw SyntaxError')
    expect(await refusal({ decode: () => Promise.reject(undefined as unknown as Error) }, null)).toMatch(
      /^decode threw/,
    )
  })

  test('a registry that is down is worth a retry; bytes that are bad are not', async () => {
    const classifier = createClassifier({ unknownErrors: 'dead-letter', now: () => 0 })
    const ctx = { topic: 'orders', partition: 0, offset: '0', key: null, attempt: 1, maxAttempts: 2 }
    const verdict = async (options: Options): Promise<unknown> => {
      const decoded = await decode(options, bytes('secret'))
      return decoded.ok ? undefined : classifier(decoded.error, ctx)
    }
    const down = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
    expect(await verdict({ decode: () => Promise.reject(new RetryableError('later')) })).toMatchObject({
      kind: 'retry',
    })
    expect(await verdict({ decode: () => Promise.reject(down) })).toMatchObject({ kind: 'retry' })
    expect(await verdict({ decode: 'json' })).toMatchObject({ kind: 'dead-letter', reason: 'undecodable' })
    expect(await verdict({ schema: z.string() })).toMatchObject({ kind: 'dead-letter', reason: 'undecodable' })
  })
})

describe.each([
  ['zod', z.object({ id: z.string(), items: z.array(z.object({ n: z.number() })) })],
  ['valibot', v.object({ id: v.string(), items: v.array(v.object({ n: v.number() })) })],
  ['arktype', type({ id: 'string', items: type({ n: 'number' }).array() })],
] as const)('a schema of %s', (_vendor, schema) => {
  test('gives its output, without a promise', () => {
    const value = { id: 'a', items: [{ n: 1 }] }
    expect(decode({ schema }, bytes(JSON.stringify(value)))).toEqual({ ok: true, value })
  })

  test('its issues are told by path, without values', async () => {
    const message = await refusal({ schema }, bytes('{"id":"a","items":[{"n":"hunter2"}]}'))
    expect(message).toMatch(/^the value does not fit its schema: items\[?\.?0\]?\.n: .*number/)
    expect(message).not.toContain('hunter2')
  })

  test('a tombstone goes only through a schema that accepts null', async () => {
    expect(await refusal({ schema }, null)).toMatch(
      /\(it is null: a tombstone must be accepted by the schema\): value: /,
    )
  })
})

describe('schemas', () => {
  test('that accept null let tombstones through; transforms count', () => {
    expect(decode({ schema: z.object({}).nullable() }, null)).toEqual({ ok: true, value: null })
    expect(decode({ schema: z.string().transform((text) => text.length) }, bytes('"abc"'))).toEqual({
      ok: true,
      value: 3,
    })
  })

  test('may be asynchronous, and follow an asynchronous decode', async () => {
    const schema = z.string().refine((text) => Promise.resolve(text === 'yes'), 'must be yes')
    expect(await decode({ decode: () => Promise.resolve('yes'), schema }, null)).toEqual({ ok: true, value: 'yes' })
    expect(await refusal({ decode: () => 'no', schema }, null)).toBe(
      'the value does not fit its schema: value: must be yes',
    )
    expect(await refusal({ decode: () => Promise.reject(new Error('gone')), schema }, null)).toBe(
      'decode threw Error: gone',
    )
  })

  test('that throw are contained', async () => {
    const schema = z.string().transform(() => {
      throw new RangeError('too far')
    })
    expect(await refusal({ schema }, bytes('"a"'))).toBe('schema threw RangeError: too far')
  })

  test('with many or long issues: bounded', async () => {
    const schema = z.array(z.number())
    const message = await refusal({ schema }, bytes(JSON.stringify(Array.from({ length: 1000 }, () => 'x'))))
    expect(message).toMatch(/; and 995 more$/)
    const long = z.string().refine(() => false, 'é\n'.repeat(10_000))
    expect(await refusal({ schema: long }, bytes('"a"'))).not.toContain('\n')
  })
})
