/**
 * From the bytes of a value to `ctx.value`. No payload gets into the error's text (it is logged), and where nothing
 * asks for a promise none is made: a synchronous schema costs no turn of the event loop.
 *
 * A tombstone is null and is decoded as null. A schema sees it: if that does not accept null, the record is
 * undecodable, so that a handler never gets a value that its type denies.
 */
import { describeError } from '../classify'
import type { Decode, DecodeInfo, StandardSchema } from '../config'
import { RetrylineError } from '../errors'
import { schemaProblem } from './schema-problem'

export type Decoded =
  | { readonly ok: true; readonly value: unknown }
  /** RETRYLINE_UNDECODABLE. Its `cause`, if any, is what the decode function or the schema threw: let it be classified. */
  | { readonly ok: false; readonly error: RetrylineError }

export type Decoder = (value: Buffer | null, info: DecodeInfo) => Decoded | Promise<Decoded>

/** Undefined where nothing is to be decoded. The decoder never throws, and its promise never rejects. */
export function createDecoder(options: {
  readonly decode?: 'json' | Decode | undefined
  readonly schema?: StandardSchema | undefined
}): Decoder | undefined {
  const { schema } = options
  const decode = options.decode ?? (schema ? 'json' : undefined)
  if (decode === undefined) return undefined
  const parse: Decoder =
    decode === 'json' ? parseJson : (value, info) => settle('decode', () => decode(value, info), ok)
  if (schema === undefined) return parse
  return (value, info) => {
    const parsed = parse(value, info)
    return isThenable(parsed) ? parsed.then((done) => fit(schema, done)) : fit(schema, parsed)
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true })

const parseJson: Decoder = (value) => {
  if (value === null) return ok(null)
  if (value.length === 0) return undecodable('the value is empty, which is not JSON')
  let text: string
  try {
    text = UTF8.decode(value)
  } catch {
    return undecodable(`the value (${value.length} bytes) is not valid UTF-8, so it is not JSON`)
  }
  try {
    return ok(JSON.parse(text) as unknown)
  } catch (error) {
    // Node's own message quotes the payload.
    return undecodable(`the value (${value.length} bytes) is not JSON${position(error)}`)
  }
}

function fit(schema: StandardSchema, parsed: Decoded): Decoded | Promise<Decoded> {
  if (!parsed.ok) return parsed
  return settle(
    'schema',
    () => schema['~standard'].validate(parsed.value),
    (result) =>
      result.issues ? undecodable(misfit(parsed.value, result.issues, schema['~standard'].vendor)) : ok(result.value),
  )
}

function misfit(value: unknown, issues: Parameters<typeof schemaProblem>[0], vendor: string): string {
  const tombstone = value === null ? ' (it is null: a tombstone must be accepted by the schema)' : ''
  return `the value does not fit its schema${tombstone}: ${schemaProblem(issues, vendor)}`
}

/** Calls the user's function and goes on with what it gives, at once or when its promise settles. */
function settle<T>(what: string, call: () => T | Promise<T>, next: (result: T) => Decoded): Decoded | Promise<Decoded> {
  try {
    const result = call()
    if (!isThenable(result)) return next(result)
    return Promise.resolve(result)
      .then(next)
      .catch((error: unknown) => threw(what, error))
  } catch (error) {
    return threw(what, error)
  }
}

function threw(what: string, error: unknown): Decoded {
  const { name, message } = describeError(error, { messageBytes: 200, stackBytes: 0 })
  const text = name === 'SyntaxError' ? position(error) : `: ${message}`
  return undecodable(`${what} threw ${name}${text}`, { cause: error })
}

function position(error: unknown): string {
  const at = /at position (\d+)/.exec(describeError(error, { stackBytes: 0 }).message)?.[1]
  return at === undefined ? '' : `, at position ${at}`
}

function ok(value: unknown): Decoded {
  return { ok: true, value }
}

function undecodable(message: string, options?: { cause: unknown }): Decoded {
  return { ok: false, error: new RetrylineError('RETRYLINE_UNDECODABLE', message, options) }
}

function isThenable<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}
