/**
 * Reading an error without trusting it. A thrown value may be anything: a proxy that throws at every touch, a getter
 * with a mind of its own, a megabyte of message. Everything here returns, and is bounded.
 */

/** How much of a name, of a code and of a message the rules look at, in UTF-16 units. */
const LONGEST_NAME = 200
const LONGEST_MESSAGE = 10_000

export function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** `value[key]`, or undefined where there is none or reading it throws. */
export function read(value: unknown, key: PropertyKey): unknown {
  if (!isObject(value)) return undefined
  try {
    return (value as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}

export function isPromise(value: unknown): boolean {
  return typeof read(value, 'then') === 'function'
}

/** A promise that nobody waits for is dropped; its rejection must not end the process. */
export function hush(promise: unknown): void {
  const then = read(promise, 'then')
  if (typeof then === 'function') then.call(promise, undefined, () => undefined)
}

/** Whether it was written as `async`, so that it can only answer promises. One that was compiled to older JavaScript is not seen. */
export function isAsync(value: unknown): boolean {
  return typeof value === 'function' && /^\[object Async/.test(Object.prototype.toString.call(value))
}

export function isArray(value: unknown): boolean {
  try {
    // Throws for a revoked proxy.
    return Array.isArray(value)
  } catch {
    return false
  }
}

/** The first `max` members of an array; nothing for what is not one. */
export function members(value: unknown, max: number): unknown[] {
  if (!isArray(value)) return []
  const length = read(value, 'length')
  const count = typeof length === 'number' ? Math.min(length, max) : 0
  return Array.from({ length: count }, (_, index) => read(value, index))
}

/** A value as a problem shows it: short, whatever it is. */
export function shown(value: unknown): string {
  try {
    return (typeof value === 'string' ? `'${value}'` : String(value)).slice(0, 80)
  } catch {
    return `a ${typeof value} that cannot be shown`
  }
}

export function textOf(value: unknown, longest: number): string {
  return typeof value === 'string' ? value.slice(0, longest) : ''
}

/** What the rules ask of one error, read once. */
export interface Look {
  readonly error: unknown
  /** `error.name`, and the name of its class where that is another: many libraries set only one of them. */
  readonly names: readonly string[]
  readonly message: string
  /** `error.code`, else `error.errorCode` (where Prisma puts it when it cannot connect). */
  readonly code: string | number | undefined
  /** The HTTP status, 100 to 599, from wherever the common clients put it. */
  readonly status: number | undefined
  readonly get: (key: PropertyKey) => unknown
}

function codeOf(value: unknown): string | number | undefined {
  return typeof value === 'number' ? value : textOf(value, LONGEST_NAME) || undefined
}

function statusOf(value: unknown): number | undefined {
  // Some write it as text; JSON:API even demands it.
  const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value
  return typeof status === 'number' && Number.isInteger(status) && status >= 100 && status <= 599 ? status : undefined
}

export function look(error: unknown): Look {
  const get = (key: PropertyKey): unknown => read(error, key)
  const names = [get('name'), read(get('constructor'), 'name')].map((name) => textOf(name, LONGEST_NAME))
  return {
    error,
    names: [...new Set(names)].filter((name) => name !== ''),
    message: textOf(get('message'), LONGEST_MESSAGE),
    code: codeOf(get('code')) ?? codeOf(get('errorCode')),
    status:
      statusOf(get('status')) ??
      statusOf(get('statusCode')) ??
      statusOf(read(get('response'), 'status')) ??
      statusOf(read(get('response'), 'statusCode')) ??
      statusOf(read(get('$metadata'), 'httpStatusCode')),
    get,
  }
}
