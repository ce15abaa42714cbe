import { isArray, isObject, members, read } from './look'
import { FIELDS } from './rules'
import { saneAfter } from './verdict'

const VERDICTS = ['retry', 'dead-letter']
const KNOWN_FIELDS: readonly string[] = [...FIELDS, 'when']
/** More rules than this are no rules but data. */
const MOST_RULES = 1000

function shown(value: unknown): string {
  try {
    return (typeof value === 'string' ? `'${value}'` : String(value)).slice(0, 80)
  } catch {
    return `a ${typeof value} that cannot be shown`
  }
}

function matchProblems(match: unknown, at: string): string[] {
  if (!isObject(match)) return [`${at}.match is ${shown(match)}: give an object such as { code: 'E_LOCKED' }`]
  const given = Object.keys(match).filter((field) => read(match, field) !== undefined)
  const unknown = given.filter((field) => !KNOWN_FIELDS.includes(field))
  const problems = unknown.map((field) => `${at}.match.${field} is unknown: use one of ${KNOWN_FIELDS.join(', ')}`)
  if (given.length === 0) problems.push(`${at}.match is empty and would never apply: name at least one field`)
  const when = read(match, 'when')
  if (when !== undefined && typeof when !== 'function')
    problems.push(`${at}.match.when is ${shown(when)}: give a function`)
  return problems
}

function ruleProblems(rule: unknown, at: string): string[] {
  if (!isObject(rule)) return [`${at} is ${shown(rule)}: give { match, verdict }, or use retryOn() or deadLetterOn()`]
  const verdict = read(rule, 'verdict')
  const after = read(rule, 'after')
  const problems = matchProblems(read(rule, 'match'), at)
  if (!VERDICTS.includes(verdict as string) && !VERDICTS.includes(read(verdict, 'kind') as string))
    problems.push(`${at}.verdict is ${shown(verdict)}: use 'retry' or 'dead-letter'`)
  if (after !== undefined && saneAfter(after) === undefined)
    problems.push(`${at}.after is ${shown(after)}: give a number of ms, 0 or more`)
  return problems
}

/** What is wrong with the option `classify`: one line for each problem, with field, value and mend. Never throws. */
export function classifyProblems(classify: unknown): string[] {
  if (classify === undefined || typeof classify === 'function') return []
  try {
    if (!isArray(classify)) return [`classify is ${shown(classify)}: give a list of rules, or a function`]
    return members(classify, MOST_RULES).flatMap((rule, index) => ruleProblems(rule, `classify[${index}]`))
  } catch {
    return ['classify cannot be read: give a list of plain objects, or a function']
  }
}
