import type { ErrorCode } from '../errors'
import { hush, isPromise, read, shown } from './look'
import type { Look } from './look'
import { retryAfter } from './retry-after'
import { applies } from './rules'
import type { ClassifyContext, Rule } from './rules'
import { knownRows, spokenRows } from './table'
import type { Row } from './table'
import { deadLetter, hold, retry, saneAfter } from './verdict'
import type { DeadLetterReason, Verdict } from './verdict'
import { everyError, unfold } from './walk'
import type { Unfolded } from './walk'

/** What a classify function may answer; nothing means that the built-in table shall decide. */
export type Answer = Verdict | 'retry' | 'dead-letter' | undefined | void

/** The option `classify`: rules in the order in which they are asked, or a function (not async: it is not waited for). */
export type ClassifyOption = readonly Rule[] | ((error: unknown, ctx: ClassifyContext) => Answer)

/** Says what to do with a failed record. Keeps nothing between calls and never throws. */
export type Classifier = (error: unknown, ctx: ClassifyContext) => Verdict

export interface ClassifierOptions {
  /** Asked before the built-in table; none by default. */
  readonly classify?: ClassifyOption | undefined
  /** What happens to an error that neither `classify` nor the table knows. */
  readonly unknownErrors: 'dead-letter' | 'retry'
  /** Wall time in ms since the epoch: a `Retry-After` may be a date. */
  readonly now: () => number
  /** Hears of a rule or function of the user that threw or answered nonsense; the record is judged without it. */
  readonly onProblem?: ((problem: Error) => void) | undefined
}

const RETRYABLE: ErrorCode = 'RETRYLINE_RETRYABLE'

const REASONS: readonly unknown[] = [
  'non-retryable',
  'unclassified',
  'undecodable',
  'timeout',
] satisfies DeadLetterReason[]

/** A verdict made anew from what the user's code answered, or undefined where it is none. */
function verdictFrom(answer: unknown, because?: unknown, after?: unknown): Verdict | undefined {
  const kind = typeof answer === 'string' ? answer : read(answer, 'kind')
  const why = because ?? read(answer, 'because')
  const said = typeof why === 'string' && why !== '' ? why : undefined
  if (kind === 'hold') {
    const dependency = read(answer, 'dependency')
    return typeof dependency === 'string' && dependency !== '' ? hold(dependency, said) : undefined
  }
  if (kind === 'retry') return retry(said, { after: saneAfter(after ?? read(answer, 'after')) })
  if (kind !== 'dead-letter') return undefined
  const reason = read(answer, 'reason')
  return deadLetter(said, { reason: REASONS.includes(reason) ? (reason as DeadLetterReason) : undefined })
}

function verdictOf(row: Row, seen: Look, detail: string | true): Verdict {
  const { id: rule, verdict: kind, reason = 'non-retryable' } = row
  const because = detail === true ? row.because : `${row.because} (${detail})`
  if (kind === 'dead-letter') return { kind, because, reason, rule }
  if (kind === 'hold') return { ...hold(nameOf(seen.get('dependency')), because), rule }
  const after = rule === 'retryable-error' ? saneAfter(seen.get('after')) : undefined
  return { kind, because, known: true, rule, ...(after !== undefined && { after }) }
}

function nameOf(dependency: unknown): string {
  return typeof dependency === 'string' && dependency !== '' ? dependency : 'a dependency without a name'
}

function firstRow(rows: readonly Row[], errors: readonly Look[]): Verdict | undefined {
  for (const row of rows) {
    for (const seen of errors) {
      const found = row.match(seen)
      if (found !== false && found !== '') return verdictOf(row, seen, found)
    }
  }
  return undefined
}

/** What the handler said: here the outermost error decides, not the order of the rows. */
function spoken(errors: readonly Look[]): Verdict | undefined {
  for (const seen of errors) {
    const verdict = firstRow(spokenRows, [seen])
    if (verdict !== undefined) return verdict
  }
  return undefined
}

/**
 * What an error and its causes are known for weighs more than what they gather. Of gathered errors one that retrying
 * cannot help is enough for a dead letter, as all of them would have to succeed; errors that nobody knows do not count
 * beside known ones.
 */
function known({ chain, gathered }: Unfolded): Verdict | undefined {
  const own = firstRow(knownRows, chain)
  if (own !== undefined) return own
  const verdicts = gathered.map(known).filter((verdict) => verdict !== undefined)
  return verdicts.find(({ kind }) => kind === 'dead-letter') ?? verdicts[0]
}

/** Makes the one function that judges every failure of a consumer. */
export function createClassifier({ classify, unknownErrors, now, onProblem }: ClassifierOptions): Classifier {
  // A copy: what is done to the list later changes nothing here.
  const rules: readonly Rule[] = Array.isArray(classify) ? [...(classify as readonly Rule[])] : []

  const report = (message: string, cause?: unknown): void => {
    try {
      onProblem?.(new Error(message, { cause }))
    } catch {
      // Whoever listens cannot break the judging either.
    }
  }

  const contained = (what: string, ask: () => Verdict | undefined): Verdict | undefined => {
    try {
      return ask()
    } catch (thrown) {
      report(`${what} threw; the record is judged without it`, thrown)
      return undefined
    }
  }

  /** A retry stands, whatever is wrong with how long it asks to wait. */
  const checkAfter = (what: string, after: unknown): void => {
    if (after === undefined || saneAfter(after) !== undefined) return
    report(
      `${what}: after is ${shown(after)}, which is no duration; give ms, or text such as '10m'. The schedule decides`,
    )
  }

  const understood = (what: string, answer: unknown, rule?: Rule): Verdict | undefined => {
    const verdict = verdictFrom(answer, rule?.because, rule?.after)
    if (verdict?.kind === 'retry') checkAfter(what, rule?.after ?? read(answer, 'after'))
    if (verdict !== undefined || answer === undefined) return verdict
    hush(answer)
    const kind = isPromise(answer) ? 'a promise (it must not be async)' : 'something that is no verdict'
    report(`${what} answered ${kind}; the record is judged without it`)
    return undefined
  }

  const asked = (error: unknown, errors: readonly Look[], ctx: ClassifyContext): Verdict | undefined => {
    if (typeof classify === 'function') return contained('classify', () => understood('classify', classify(error, ctx)))
    for (const [index, rule] of rules.entries()) {
      const what = `classify[${index}]`
      const verdict = contained(what, () =>
        applies(rule, errors, error, ctx) ? understood(what, rule.verdict, rule) : undefined,
      )
      if (verdict !== undefined) return verdict
    }
    return undefined
  }

  const unknown: Verdict =
    unknownErrors === 'retry'
      ? {
          kind: 'retry',
          because: 'no rule knows this error, and unknown errors are retried',
          known: false,
          rule: 'unknown',
        }
      : { kind: 'dead-letter', because: 'no rule knows this error', reason: 'unclassified', rule: 'unknown' }

  return (error, ctx) => {
    const unfolded = unfold(error)
    const errors = everyError(unfolded)
    const verdict = asked(error, errors, ctx) ?? spoken(errors) ?? known(unfolded) ?? unknown
    if (verdict.kind !== 'retry' || verdict.after !== undefined) return verdict
    if (verdict.rule === 'retryable-error') {
      for (const { code, get } of errors) if (code === RETRYABLE) checkAfter('a RetryableError', get('after'))
    }
    for (const seen of errors) {
      const after = retryAfter(seen, now)
      if (after !== undefined) return { ...verdict, after }
    }
    return verdict
  }
}
