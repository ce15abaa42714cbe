import { isObject, look, members, read } from './look'
import type { Look } from './look'

/**
 * An error, unfolded: the error with its causes, outermost first, and for each AggregateError among them the errors
 * that it gathers, unfolded in turn.
 */
export interface Unfolded {
  readonly chain: readonly Look[]
  readonly gathered: readonly Unfolded[]
}

/** How many errors are looked at in all, in one chain of causes, and of one AggregateError. What lies beyond is not seen. */
const MOST_ERRORS = 250
const LONGEST_CHAIN = 50
const MOST_MEMBERS = 100

/** Where errors keep the one behind them: the language's own word; Sequelize's two; TypeORM's. */
const CAUSES = ['cause', 'original', 'parent', 'driverError'] as const

const isAbort = ({ names, code }: Look): boolean => names.includes('AbortError') || code === 'ABORT_ERR'

function causesOf(seen: Look): unknown[] {
  const causes: unknown[] = CAUSES.map((key) => seen.get(key))
  // Elsewhere `reason` is no error: the MongoDB driver keeps a description of its servers there.
  if (isAbort(seen)) causes.push(seen.get('reason'))
  return causes
}

function gatheredBy(seen: Look): unknown[] {
  if (seen.names.includes('SuppressedError')) return [seen.get('error'), seen.get('suppressed')]
  // A thrown array counts as what it holds: class-validator's `validate` hands one out.
  const thrown = members(seen.error, MOST_MEMBERS)
  if (thrown.length > 0) return thrown
  const errors = members(seen.get('errors'), MOST_MEMBERS)
  if (seen.names.some((name) => name.endsWith('AggregateError'))) return errors
  // Validators keep plain objects and strings in `errors`; those are no errors of their own.
  return errors.filter(
    (error) => typeof read(error, 'stack') === 'string' && typeof read(error, 'message') === 'string',
  )
}

/** Unfolds `error`. Each object is looked at once, so cycles end; width and depth are bounded, so all else does too. */
export function unfold(error: unknown): Unfolded {
  const seen = new Set<unknown>()
  const isNew = (value: unknown): boolean => {
    if (!isObject(value) || typeof value === 'function' || seen.has(value) || seen.size >= MOST_ERRORS) return false
    seen.add(value)
    return true
  }
  const unfoldFrom = (first: unknown): Unfolded => {
    const chain = [look(first)]
    // The list grows while it is walked: breadth first, so the outermost come first.
    for (const one of chain) {
      const causes = causesOf(one).filter(isNew)
      chain.push(...causes.slice(0, Math.max(0, LONGEST_CHAIN - chain.length)).map(look))
    }
    const gathered = chain.flatMap(gatheredBy).filter(isNew)
    return { chain, gathered: gathered.map(unfoldFrom) }
  }
  seen.add(error)
  return unfoldFrom(error)
}

/** Every error that was found: an error's own causes come before what it gathers. */
export function everyError({ chain, gathered }: Unfolded): Look[] {
  return [...chain, ...gathered.flatMap(everyError)]
}
