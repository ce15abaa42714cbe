import type { z } from 'zod'
import { errorText } from '../observe'
import { FIELDS } from './fields'
import type { Checked, Field } from './fields'
import { insteadOf } from './foreign-options'
import { show } from './show'
import { suggest } from './suggest'

const NAMES = Object.keys(FIELDS) as Field[]

/** The options that must be given, and how. */
const MISSING: { readonly [F in Field]?: string } = {
  kafka: 'give your kafkajs client: new Kafka({ brokers })',
  groupId: 'name the consumer group',
  topic: 'name the topic to consume, or several',
  schedule: "give the waits between attempts, such as ['1m', '10m', '1h']",
  handler: 'give the function that handles a record, or batchHandler',
}

function unknownNames(options: object): string[] {
  return Object.keys(options)
    .filter((name) => !(NAMES as string[]).includes(name))
    .map((name) => {
      const meant = suggest(name, NAMES)
      const mend = insteadOf(name) ?? (meant ? `did you mean ${meant}?` : 'take it out')
      return `${name.slice(0, 80)}: there is no such option; ${mend}`
    })
}

/** Checks each option by itself; what is no good is in `problems` and absent from `checked`. Never throws. */
export function checkFields(options: object): { checked: Partial<Checked>; problems: string[] } {
  const checked: Partial<Checked> = {}
  try {
    const problems = unknownNames(options)
    for (const name of NAMES) {
      const found = checkField(name, options as Readonly<Record<string, unknown>>)
      problems.push(...found.problems)
      if (found.problems.length === 0) Object.assign(checked, { [name]: found.value })
    }
    return { checked, problems }
  } catch (error) {
    return { checked: {}, problems: [`options: reading them threw (${errorText(error)}); give a plain object`] }
  }
}

function checkField(name: Field, options: Readonly<Record<string, unknown>>): { value?: unknown; problems: string[] } {
  try {
    const value = options[name]
    const missing = MISSING[name]
    const isThere = name === 'handler' && options['batchHandler'] !== undefined
    if (value === undefined && missing !== undefined && !isThere)
      return { problems: [`${name}: is missing; ${missing}`] }
    // Zod fills in a default for undefined only: null is a value, and none of these options takes it.
    const result = (FIELDS[name] as z.ZodType).safeParse(value)
    return result.success
      ? { value: result.data, problems: [] }
      : { problems: [...new Set(result.error.issues.map((issue) => lineOf(name, value, issue)))] }
  } catch (error) {
    return { problems: [`${name}: reading it threw (${errorText(error)}); give a plain value`] }
  }
}

function lineOf(name: Field, value: unknown, issue: z.core.$ZodIssue): string {
  const path = issue.path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')
  const at = issue.path.reduce<unknown>((in_, key) => (in_ as Record<PropertyKey, unknown> | undefined)?.[key], value)
  return `${name}${path}: ${show(at)} ${issue.message}`
}
