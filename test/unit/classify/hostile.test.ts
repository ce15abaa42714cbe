import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeError } from '../../../src/classify'
import { judge } from './helpers'

const no = (): never => {
  throw new Error('no')
}
const traps = {
  get: no,
  has: no,
  ownKeys: no,
  getPrototypeOf: no,
  getOwnPropertyDescriptor: no,
  set: no,
  apply: no,
  defineProperty: no,
}
const revoked = (target: object): object => {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}
const withGetters = (...keys: string[]): object =>
  Object.defineProperties({}, Object.fromEntries(keys.map((key) => [key, { get: no, enumerable: true }])))

const hostile: Record<string, unknown> = {
  undefined: undefined,
  null: null,
  'a text': 'ECONNREFUSED',
  'an empty text': '',
  'a number': 503,
  NaN: NaN,
  'a bigint': 1n,
  'a boolean': false,
  'a symbol': Symbol('x'),
  'a function': () => 'x',
  'a frozen error': Object.freeze(new Error('x')),
  'an object without prototype': Object.create(null),
  'a proxy that throws at all': new Proxy({}, traps),
  'a proxy of an error that throws at all': new Proxy(new Error('x'), traps),
  'a proxy of a function': new Proxy(() => 1, traps),
  'a revoked proxy': revoked({}),
  'a revoked proxy of a list': revoked([]),
  'getters that throw': withGetters('name', 'message', 'code', 'stack', 'cause', 'errors', 'constructor', 'status'),
  'a list of proxies': [new Proxy({}, traps), revoked([])],
  'causes that are proxies': new Error('x', { cause: new Proxy({}, traps) }),
  'members that are proxies': new AggregateError([new Proxy({}, traps), revoked([])]),
  'a message of 50 MB': new Error('x'.repeat(50_000_000)),
  'a name of 50 MB': Object.assign(new Error('x'), { name: 'x'.repeat(50_000_000) }),
  'a name that is no text': Object.assign(new Error('x'), { name: { toString: no }, message: 7, code: {} }),
  'a length that lies': new Proxy([], { get: (_, key) => (key === 'length' ? 2 ** 53 : undefined) }),
  'a text that cannot be made': { toString: no, [Symbol.toPrimitive]: no },
  'a proxy that answers itself to all': new Proxy(
    Object.assign(() => 1, {}),
    {
      get: (_, __, self: unknown) => self,
      apply: (_, self: unknown) => self,
    },
  ),
}

describe('hostile input', () => {
  for (const [what, thrown] of Object.entries(hostile)) {
    it(`${what} is judged`, () => {
      expect(judge(thrown).kind).toBe('dead-letter')
      expect(judge(thrown, { classify: [{ match: { type: Error, when: no }, verdict: 'retry' }] }).kind).toBe(
        'dead-letter',
      )
    })

    it(`${what} is described`, () => {
      const { name, message, stack, code } = describeError(thrown)
      expect([typeof name, typeof message]).toEqual(['string', 'string'])
      expect(Buffer.byteLength(name)).toBeLessThanOrEqual(128)
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1024)
      expect(Buffer.byteLength(stack ?? '')).toBeLessThanOrEqual(8192)
      expect(Buffer.byteLength(code ?? '')).toBeLessThanOrEqual(128)
    })
  }

  it('anything at all is judged and described, and twice the same', () => {
    const keys = ['name', 'message', 'code', 'status', 'statusCode', 'response', 'headers', 'cause', 'errors', 'original',
      'issues', '$metadata', '$retryable', 'errorLabels', 'hasErrorLabel', 'details', 'metadata', 'constructor', 'stack',
      'retryAfter', 'retry-after', 'reason', 'kind', 'then'] // prettier-ignore
    const words = ['TypeError', 'AbortError', 'AggregateError', 'ECONNRESET', '40001', 'P1001', 'VersionError', 429, 14]
    const anything = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, fc.anything({ withNullPrototype: true, withMap: true, withDate: true }), fc.constantFrom(...words), tie('object')),
      object: fc.dictionary(fc.constantFrom(...keys), tie('value')),
    })).value // prettier-ignore
    fc.assert(
      fc.property(anything, anything, (thrown, answer) => {
        const options = { classify: (() => answer) as never, onProblem: () => undefined }
        const verdict = judge(thrown, options)
        expect(['retry', 'dead-letter']).toContain(verdict.kind)
        expect(judge(thrown, options)).toEqual(verdict)
        expect(judge(Object.assign(new Error('x'), { cause: thrown })).because).not.toBe('')
        expect(JSON.parse(JSON.stringify(verdict))).toEqual(verdict)
        expect(typeof describeError(thrown).message).toBe('string')
      }),
      { numRuns: 500 },
    )
  })
})
