/**
 * Small zod schemas for one option each. A message is the end of a line that begins with the field and its value
 * (`concurrency: 0 …`), and always says what to give instead.
 */
import { z } from 'zod'
import { flaw, formatDuration, isZero, parseDuration } from '../topology'
import { parseSize } from './size'

const WHOLE = /^[^\p{Cc}\p{Cs}]+$/u

/** A duration within bounds, in ms; `zero: true` also takes 0, for options where "at once" makes sense. */
export function duration(min: number, max: number, zero = false): z.ZodType<number> {
  const range = `give ${zero ? '0, or ' : ''}a duration from '${formatDuration(min)}' to '${formatDuration(max)}'`
  return z.unknown().transform((value, ctx) => {
    if (zero && (value === 0 || value === '0' || value === '0s' || value === '0ms')) return 0
    const parsed = parseDuration(value, '')
    if (parsed.ok && parsed.ms >= min && parsed.ms <= max) return parsed.ms
    const long = parsed.ok && parsed.ms > max
    const wrong = parsed.ok || isZero(value) ? `is too ${long ? 'long' : 'short'}` : `is not a duration${flaw(value)}`
    ctx.addIssue({ code: 'custom', message: `${wrong}; ${range}: a number and a unit (ms, s, m, h, d), or whole ms` })
    return z.NEVER
  })
}

export function whole(min: number, max: number): z.ZodType<number> {
  const mend = `give a whole number from ${min} to ${max}`
  const error = ({ input }: { input?: unknown }): string => {
    if (typeof input === 'number') return `is ${Number.isInteger(input) ? 'out of range' : 'no whole number'}; ${mend}`
    return `is not a number${typeof input === 'string' && /^\d+$/.test(input) ? ' but text' : ''}; ${mend}`
  }
  return z.int({ error }).min(min, { error }).max(max, { error })
}

/** A part of all, 0 to 1. */
export function share(): z.ZodType<number> {
  const error = 'is no share; give a number from 0 to 1, such as 0.5 for a half'
  return z.number({ error }).min(0, { error }).max(1, { error })
}

export function oneOf<const T extends string>(...values: T[]): z.ZodType<T> {
  const named = values.map((value) => `'${value}'`)
  return z.enum(values, { error: `is not one of its values; give ${named.slice(0, -1).join(', ')} or ${named.at(-1)}` })
}

export function size(min: number, max: number): z.ZodType<number> {
  const mend = `give bytes from ${min} to ${max}: a number, or text such as '64MiB' or '500KiB'`
  return z.unknown().transform((value, ctx) => {
    const bytes = parseSize(value)
    if (bytes !== undefined && bytes >= min && bytes <= max) return bytes
    ctx.addIssue({ code: 'custom', message: `${bytes === undefined ? 'is not a size' : 'is out of range'}; ${mend}` })
    return z.NEVER
  })
}

/** Text without control characters or half surrogates: it goes into headers, names and logs. */
export function text(what: string, maxLength: number): z.ZodType<string> {
  const error = `is not ${what}; give text of 1 to ${maxLength} characters, without control characters or spaces at its ends`
  return z
    .string({ error })
    .max(maxLength, { error })
    .regex(WHOLE, { error })
    .refine((value) => value.trim() === value, { error })
}

/** Anything that `test` takes, handed on as it is. */
export function anyThat<T>(test: (value: unknown) => boolean, error: string): z.ZodType<T> {
  return z.custom<T>(test, { error })
}

export function hasFunctions(value: unknown, names: readonly string[]): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  return names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function')
}
