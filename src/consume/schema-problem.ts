import type { SchemaIssue } from '../config'

const MOST_ISSUES = 5
const LONGEST = 120

/** The first few issues of a schema, each with its path, bounded, and without the values that did not fit. */
export function schemaProblem(issues: readonly SchemaIssue[], vendor: string): string {
  const told = issues.slice(0, MOST_ISSUES).map((issue) => `${pathOf(issue)}: ${shorten(withoutValue(issue, vendor))}`)
  if (issues.length > MOST_ISSUES) told.push(`and ${issues.length - MOST_ISSUES} more`)
  return told.join('; ')
}

/** zod's messages tell types only; others quote the value ("but received …", "(was …)"), which may be anybody's data. */
function withoutValue(issue: SchemaIssue, vendor: string): string {
  if (vendor === 'zod') return issue.message
  const { expected } = issue as { expected?: unknown }
  if (typeof expected === 'string') return `expected ${expected}`
  return issue.message.replace(/[\s,:(]*\b(but )?(received|got|was)\b.*$/is, '')
}

function pathOf({ path }: SchemaIssue): string {
  if (!path || path.length === 0) return 'value'
  const keys = path.map((segment) => (typeof segment === 'object' ? segment.key : segment))
  const text = keys.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')
  return shorten(text.replace(/^\./, ''))
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line
}
