import { suggest } from './suggest'

/**
 * What is wrong with one set of hooks. A hook may have members of its own (counters, say), so only a function whose
 * name is nearly that of an event is taken for a slip: it would never be called.
 */
export function hookProblem(hook: unknown, names: readonly string[]): string | undefined {
  const mend = `give an object with methods named after events: { ${names.slice(0, 3).join(', ')}, … }`
  if (typeof hook !== 'object' || hook === null || Array.isArray(hook)) return `is not a set of hooks; ${mend}`
  const methods = hook as Record<string, unknown>
  for (const name of names) {
    const method = methods[name]
    if (method !== undefined && typeof method !== 'function') return `has a ${name} that is not a function; ${mend}`
  }
  for (const key of Object.keys(hook)) {
    const meant = names.includes(key) ? undefined : suggest(key.replace(/^on(?=[A-Z])/, ''), names)
    if (meant !== undefined && typeof methods[key] === 'function') {
      return `has a method ${key} that no event calls; did you mean ${meant}?`
    }
  }
  return names.some((name) => typeof methods[name] === 'function') ? undefined : `has no method of any event; ${mend}`
}
