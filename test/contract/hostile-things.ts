/** What hostile code throws, returns and is: shared by the suites that put it where handlers, rules and observers stand. */

export const no = (): never => {
  throw new Error('no')
}

const TRAPS = Object.fromEntries(Object.getOwnPropertyNames(Reflect).map((trap) => [trap, no])) as ProxyHandler<object>

/** Throws at every touch. */
export const untouchable = (target: object = {}): object => new Proxy(target, TRAPS)

export function revoked(target: object = {}): object {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

function errorWith(...keys: string[]): Error {
  return Object.defineProperties(
    new Error('x'),
    Object.fromEntries(keys.map((key) => [key, { get: no, enumerable: true, configurable: true }])),
  )
}

function cyclic(): Error {
  const outer: Error & { errors?: unknown } = new AggregateError([], 'outer')
  const inner = new Error('inner', { cause: outer })
  Object.assign(outer, { cause: inner, errors: [outer, inner, [outer]] })
  return outer
}

function deep(): Error {
  let error = new Error('the first')
  for (let i = 0; i < 1_000; i++) error = new Error(`at ${i}`, { cause: error })
  return error
}

/** By what it is; made anew each time, as a consumer may keep hold of nothing. */
export const THROWN: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  'a symbol': () => Symbol('x'),
  'a bigint': () => 1n,
  NaN: () => NaN,
  'an empty text': () => '',
  'a function': () => no,
  'a frozen object': () => Object.freeze({}),
  'an object without prototype': () => Object.create(null) as unknown,
  'a proxy whose every trap throws': () => untouchable(),
  'a proxy of an error whose every trap throws': () => untouchable(new Error('x')),
  'a revoked proxy': () => revoked(),
  'a revoked proxy of a list': () => revoked([]),
  'an error whose getters throw': () => errorWith('message', 'name', 'code', 'cause', 'stack', 'errors', 'constructor'),
  'an error that is its own cause': cyclic,
  'an error with 1,000 causes': deep,
  'an error of 3 MB': () => Object.assign(new Error('☃'.repeat(1e6)), { name: 'N'.repeat(1e6), code: 'C'.repeat(1e6) }),
  'a code that is a number': () => Object.assign(new Error('x'), { code: -Infinity }),
  'a code that is a bigint': () => Object.assign(new Error('x'), { code: 2n ** 70n, status: 503n }),
  'a code that is a symbol': () => Object.assign(new Error('x'), { code: Symbol('c'), name: Symbol('n') }),
  'lone surrogates': () => Object.assign(new Error('\ud800 \udfff'), { name: '\udc00'.repeat(500) }),
  'a Retry-After that is not to be had': () =>
    Object.assign(new Error('x'), { status: 429, headers: untouchable(), retryAfter: NaN }),
  'an error that has the mark of ours, and lies': () =>
    Object.defineProperties(new Error('x'), {
      [Symbol.for('retryline.error')]: { value: true },
      code: { get: no },
      after: { get: no },
      problems: { value: null },
    }),
  'a promise that is rejected': () => {
    const promise = Promise.reject(new Error('nobody waits for this'))
    promise.catch(() => undefined)
    return promise
  },
}

/** Answers that are waited for and are not what they seem. */
export const THENABLES: Readonly<Record<string, { make: () => unknown; ends: 'ok' | 'failed' | 'timeout' }>> = {
  'never settles': { make: () => ({ then() {} }), ends: 'timeout' },
  'a promise that never settles': { make: () => new Promise(() => undefined), ends: 'timeout' },
  'settles twice, first well': {
    make: () => ({
      then(resolve: (value: unknown) => void, reject: (error: unknown) => void) {
        resolve(1)
        reject(new Error('after all'))
        resolve(2)
        no()
      },
    }),
    ends: 'ok',
  },
  'settles twice, first badly': {
    make: () => ({
      then(resolve: (value: unknown) => void, reject: (error: unknown) => void) {
        reject(undefined)
        resolve(1)
      },
    }),
    ends: 'failed',
  },
  'throws in then': { make: () => ({ then: no }), ends: 'failed' },
  'throws where then is read': { make: () => Object.defineProperty({}, 'then', { get: no }), ends: 'failed' },
  'throws at every touch': { make: () => untouchable(), ends: 'failed' },
  'is a revoked proxy': { make: () => revoked(), ends: 'failed' },
  'has a then that is no function': { make: () => ({ then: 'later' }), ends: 'ok' },
}
