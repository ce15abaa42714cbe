import { isArray, isAsync, isObject, members, read, shown } from './look'
import { FIELDS } from './rules'
import { saneAfter } from './verdict'

const VERDICTS = ['retry', 'dead-letter']
const KINDS = [...VERDICTS, 'hold']
const KNOWN_FIELDS: readonly string[] = [...FIELDS, 'when']
const NOT_AWAITED =
  'and a verdict is not waited for: make it a plain function, ask in the handler, and let it throw what the verdict needs'
/** More rules than this are no rules but data. */
const MOST_RULES = 1000

function matchProblems(match: unknown, at: string): string[] {
  if (!isObject(match)) return [`${at}.match is ${shown(match)}: give an object such as { code: 'E_LOCKED' }`]
  const given = Object.keys(match).filter((field) => read(match, field) !== undefined)
  const unknown = given.filter((field) => !KNOWN_FIELDS.includes(field))
  const problems = unknown.map((field) => `${at}.match.${field} is unknown: use one of ${KNOWN_FIELDS.join(', ')}`)
  if (given.length === 0) problems.push(`${at}.match is empty and would never apply: name at least one field`)
  const when = read(match, 'when')
  if (when !== undefined && typeof when !== 'function')
    problems.push(`${at}.match.when is ${shown(when)}: give a function`)
  else if (isAsync(when)) problems.push(`${at}.match.when is async, ${NOT_AWAITED}`)
  return problems
}

function ruleProblems(rule: unknown, at: string): string[] {
  if (!isObject(rule)) return [`${at} is ${shown(rule)}: give { match, verdict }, or use retryOn() or deadLetterOn()`]
  const verdict = read(rule, 'verdict')
  const after = read(rule, 'after')
  const problems = matchProblems(read(rule, 'match'), at)
  if (!VERDICTS.includes(verdict as string) && !KINDS.includes(read(verdict, 'kind') as string))
    problems.push(`${at}.verdict is ${shown(verdict)}: use 'retry', 'dead-letter' or hold('name of what is down')`)
  const dependency = read(verdict, 'dependency')
  if (read(verdict, 'kind') === 'hold' && (typeof dependency !== 'string' || dependency === ''))
    problems.push(`${at}.verdict names no dependency: use hold('name of what is down')`)
  for (const [field, given] of [
    ['after', after],
    ['verdict.after', read(verdict, 'after')],
  ] as const) {
    if (given === undefined || saneAfter(given) !== undefined) continue
    problems.push(`${at}.${field} is ${shown(given)}: give a number of ms, 0 or more, or a duration such as '10m'`)
  }
  return problems
}

/** What is wrong with the option `classify`: one line for each problem, with field, value and mend. Never throws. */
export function classifyProblems(classify: unknown): string[] {
  if (classify === undefined) return []
  if (typeof classify === 'function') return isAsync(classify) ? [`classify is async, ${NOT_AWAITED}`] : []
  try {
    if (!isArray(classify)) return [`classify is ${shown(classify)}: give a list of rules, or a function`]
    return members(classify, MOST_RULES).flatMap((rule, index) => ruleProblems(rule, `classify[${index}]`))
  } catch {
    return ['classify cannot be read: give a list of plain objects, or a function']
  }
}
