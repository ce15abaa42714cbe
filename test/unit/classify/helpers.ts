import { createClassifier } from '../../../src/classify'
import type { ClassifierOptions, ClassifyContext, Verdict } from '../../../src/classify'

export const NOW = Date.parse('2026-03-01T12:00:00Z')

export const ctx: ClassifyContext = {
  topic: 'orders.confirmed',
  partition: 3,
  offset: '9007199254740993',
  key: null,
  attempt: 1,
  maxAttempts: 4,
}

export function judge(error: unknown, options: Partial<ClassifierOptions> = {}): Verdict {
  return createClassifier({ unknownErrors: 'dead-letter', now: () => NOW, ...options })(error, ctx)
}

/** An error with the properties that a library gives it. */
export function shaped(message: string, properties: Record<string, unknown> = {}, cause?: unknown): Error {
  return Object.assign(new Error(message, cause === undefined ? {} : { cause }), properties)
}

/** An error whose class has this name, and which sets no name of its own. */
export function ofClass(name: string, message: string, properties: Record<string, unknown> = {}): Error {
  const Named = { [name]: class extends Error {} }[name] ?? Error
  return Object.assign(new Named(message), properties)
}
