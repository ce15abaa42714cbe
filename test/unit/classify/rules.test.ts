import { describe, expect, it, vi } from 'vitest'
import { classifyProblems, createClassifier, deadLetter, deadLetterOn, retry, retryOn } from '../../../src/classify'
import type { ClassifierOptions, Rule } from '../../../src/classify'
import { NonRetryableError } from '../../../src/errors'
import { ctx, judge, NOW, shaped } from './helpers'

class Locked extends Error {}
class Unpaid extends Locked {}
const network = shaped('x', { code: 'ECONNREFUSED' })
const by = (...classify: Rule[]) => ({ classify })

describe('rules', () => {
  it('come before the whole table, in their order', () => {
    expect(judge(network, by(deadLetterOn({ code: 'ECONNREFUSED' }, { because: 'a typo' })))).toEqual({
      kind: 'dead-letter',
      because: 'a typo',
      reason: 'non-retryable',
      rule: 'user',
    })
    expect(judge(new NonRetryableError('x'), by(retryOn(NonRetryableError)))).toMatchObject({ kind: 'retry' })
    const both = by(retryOn({ status: 404 }, { after: 5000 }), deadLetterOn({ status: '4xx' }))
    expect(judge(shaped('x', { status: 404 }), both)).toMatchObject({ kind: 'retry', after: 5000, known: true })
    expect(judge(shaped('x', { status: 429 }), both)).toMatchObject({ kind: 'dead-letter' })
    expect(judge(network, both)).toMatchObject({ rule: 'network' })
  })

  const error = shaped('order 7 is locked', { name: 'LockedError', code: 'E_LOCKED', status: 423 })
  it.each<[Rule['match'], boolean]>([
    [{ name: 'LockedError' }, true],
    [{ name: ['Other', /^Locked/] }, true],
    [{ name: 'Locked' }, false],
    [{ code: 'E_LOCKED' }, true],
    [{ code: [7, /^E_/] }, true],
    [{ code: 423 }, false],
    [{ status: 423 }, true],
    [{ status: [404, 423] }, true],
    [{ status: [400, 500] }, false],
    [{ status: '4xx' }, true],
    [{ status: ['5xx', { from: 420, to: 423 }] }, true],
    [{ status: { from: 424, to: 499 } }, false],
    [{ message: 'is locked' }, true],
    [{ message: /^order \d+/g }, true],
    [{ message: 'unlocked' }, false],
    [{ type: Error }, true],
    [{ type: [Locked, RangeError] }, false],
    [{ name: 'LockedError', status: 404 }, false],
    [{ name: 'LockedError', when: (e) => (e as Error).message.includes('7') }, true],
    [{ when: (_, { attempt }) => attempt === 1 }, true],
    [{ when: () => 'yes' as unknown as boolean }, false],
    [{}, false],
  ])('match by %o: %s', (match, fits) => {
    const verdict = judge(error, by({ match, verdict: 'retry' }))
    expect(verdict).toMatchObject(fits ? { kind: 'retry', rule: 'user' } : { rule: 'http-refused' })
  })

  it('match global and sticky patterns each time anew', () => {
    const classify = createClassifier({
      classify: [retryOn({ message: /locked/g }), retryOn({ code: /E_LOCKED/y })],
      unknownErrors: 'dead-letter',
      now: () => NOW,
    })
    for (const thrown of [error, error, error]) expect(classify(thrown, ctx)).toMatchObject({ rule: 'user' })
  })

  it('look at causes and gathered errors, and want all fields of one and the same', () => {
    const wrapped = new Error('x', { cause: new AggregateError([new Unpaid('y')]) })
    expect(judge(wrapped, by(retryOn(Locked)))).toMatchObject({ kind: 'retry' })
    const split = shaped('x', { code: 'A' }, shaped('y', { name: 'B' }))
    expect(judge(split, by(retryOn({ code: 'A', name: 'B' })))).toMatchObject({ rule: 'unknown' })
    const seen: unknown[] = []
    const when = (e: unknown) => seen.push(e) < 0
    judge(wrapped, by(retryOn({ when }), retryOn({ type: Locked, when })))
    expect(seen).toEqual([wrapped, expect.any(Unpaid)])
  })

  it('may give a whole verdict', () => {
    const rule: Rule = {
      match: { code: 'E_LOCKED' },
      verdict: deadLetter('old', { reason: 'timeout' }),
      because: 'new',
    }
    expect(judge(error, by(rule))).toMatchObject({ reason: 'timeout', because: 'new' })
    expect(judge(error, by({ ...rule, verdict: retry('wait', { after: 7 }) }))).toMatchObject({ after: 7 })
  })

  it('heed a Retry-After where they give no wait of their own', () => {
    const limited = shaped('x', { status: 429, headers: { 'retry-after': '7' } })
    expect(judge(limited, by(retryOn({ status: 429 })))).toMatchObject({ rule: 'user', after: 7000 })
    expect(judge(limited, by(retryOn({ status: 429 }, { after: 0 })))).toMatchObject({ rule: 'user', after: 0 })
  })

  it('may give the wait as text', () => {
    expect(judge(error, by(retryOn({ status: 423 }, { after: '10m' })))).toMatchObject({ after: 600_000 })
    expect(judge(error, by({ match: { status: 423 }, verdict: retry('x', { after: '1h' }) }))).toMatchObject({
      after: 3_600_000,
    })
    expect(judge(error, { classify: () => retry('x', { after: '1h' }) })).toMatchObject({ after: 3_600_000 })
  })

  it('keep a long because short', () => {
    const verdict = judge(error, by(retryOn({ status: 423 }, { because: '€'.repeat(10_000) })))
    expect(Buffer.byteLength(verdict.because)).toBeLessThanOrEqual(200)
  })
})

describe('a function', () => {
  it('is asked first, each time, with the thrown error and the record', () => {
    const classify = vi.fn((_: unknown, { attempt }: { attempt: number }) =>
      attempt > 2 ? ('dead-letter' as const) : undefined,
    )
    const judged = createClassifier({ classify, unknownErrors: 'retry', now: () => NOW })
    expect(judged(network, ctx)).toMatchObject({ rule: 'network' })
    expect(judged(network, { ...ctx, attempt: 3 })).toMatchObject({ kind: 'dead-letter', rule: 'user' })
    expect(judged(network, ctx)).toMatchObject({ rule: 'network' })
    expect(classify).toHaveBeenLastCalledWith(network, ctx)
  })

  it('answers with a word or a verdict', () => {
    expect(judge(network, { classify: () => 'dead-letter' })).toMatchObject({ reason: 'non-retryable' })
    expect(judge('x', { classify: () => 'retry' })).toMatchObject({ kind: 'retry', known: true })
    expect(judge('x', { classify: () => retry('busy', { after: 9 }) })).toEqual({
      kind: 'retry',
      because: 'busy',
      after: 9,
      known: true,
      rule: 'user',
    })
    expect(judge('x', { classify: () => deadLetter() })).toMatchObject({ kind: 'dead-letter' })
  })
})

describe('user code that fails is contained and reported', () => {
  const contained = (error: unknown, classify: unknown) => {
    const problems: Error[] = []
    const onProblem = (problem: Error) => void problems.push(problem)
    return { verdict: judge(error, { classify: classify as ClassifierOptions['classify'], onProblem }), problems }
  }
  const boom = () => {
    throw new Error('boom')
  }

  it('when it throws: the next rule is asked', () => {
    const { verdict, problems } = contained(network, [retryOn({ when: boom }), deadLetterOn({ code: /ECONN/ })])
    expect(verdict).toMatchObject({ kind: 'dead-letter', rule: 'user' })
    expect(problems.map(({ message }) => message)).toEqual(['classify[0] threw; the record is judged without it'])
    expect(problems[0]?.cause).toEqual(new Error('boom'))
    expect(contained(network, boom)).toMatchObject({ verdict: { rule: 'network' }, problems: [{}] })
  })

  it.each([null, 0, true, 'hold', {}, [], { kind: 'maybe' }, Symbol('x'), () => 'retry', new Date(0)])(
    'when it answers %o',
    (answer) => {
      const { verdict, problems } = contained(network, () => answer)
      expect(verdict).toMatchObject({ rule: 'network' })
      expect(problems.map(({ message }) => message)).toEqual([expect.stringContaining('classify answered')])
    },
  )

  it('when it is async, also when it rejects', async () => {
    const rejections: unknown[] = []
    const note = (reason: unknown) => void rejections.push(reason)
    process.on('unhandledRejection', note)
    const { verdict, problems } = contained(network, () => Promise.reject(new Error('late')))
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', note)
    expect(verdict).toMatchObject({ rule: 'network' })
    expect(problems[0]?.message).toContain('must not be async')
    expect(rejections).toEqual([])
  })

  it('when a `when` answers a promise: it is not taken for a yes, and may reject', async () => {
    const rejections: unknown[] = []
    const note = (reason: unknown) => void rejections.push(reason)
    process.on('unhandledRejection', note)
    for (const match of [
      { when: () => Promise.reject(new Error('late')) },
      { code: /ECONN/, when: async () => true },
    ]) {
      const { verdict, problems } = contained(network, [{ match, verdict: 'dead-letter' }])
      expect(verdict).toMatchObject({ rule: 'network' })
      expect(problems.map(({ message }) => message)).toEqual(['classify[0] threw; the record is judged without it'])
      expect(String(problems[0]?.cause)).toContain('when answered a promise; make it a function that is not async')
    }
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', note)
    expect(rejections).toEqual([])
  })

  it('when a wait is no duration: the retry stands, without it', () => {
    for (const after of ['10', 'soon', NaN]) {
      const { verdict, problems } = contained(network, () => retry('busy', { after }))
      expect(verdict).toEqual({ kind: 'retry', because: 'busy', known: true, rule: 'user' })
      expect(problems.map(({ message }) => message)).toEqual([
        expect.stringMatching(/^classify: after is '?(10|soon|NaN)'?, which is no duration/),
      ])
    }
  })

  it('when a verdict has parts that make no sense', () => {
    const answer = { kind: 'retry', because: 7, after: 'soon' }
    expect(contained('x', () => answer).verdict).toEqual({
      kind: 'retry',
      because: 'the classifier asks for a retry',
      known: true,
      rule: 'user',
    })
    expect(contained('x', () => ({ kind: 'dead-letter', reason: 'whim' })).verdict).toMatchObject({
      reason: 'non-retryable',
    })
  })

  it('when a rule or the list is none', () => {
    expect(contained(network, [null, 7, {}, { match: null }])).toMatchObject({ verdict: { rule: 'network' } })
    expect(contained(network, { length: 1 })).toMatchObject({ verdict: { rule: 'network' }, problems: [] })
  })

  it('when the listener throws too, or there is none', () => {
    expect(judge(network, { classify: boom, onProblem: boom })).toMatchObject({ rule: 'network' })
    expect(judge(network, { classify: boom })).toMatchObject({ rule: 'network' })
  })
})

describe('classifyProblems', () => {
  it('finds nothing wrong with what is right', () => {
    const rules = [retryOn(Locked), deadLetterOn({ status: 401 }), { match: { code: 'X' }, verdict: retry() }]
    for (const right of [undefined, () => undefined, [], rules]) expect(classifyProblems(right)).toEqual([])
  })

  it('names field, value and mend of everything that is wrong', () => {
    const wrong = [
      { match: { statu: 500 }, verdict: 'hold' },
      7,
      { match: {}, verdict: 'retry', after: '5 m' },
      { verdict: 'retry' },
    ]
    expect(classifyProblems(wrong)).toEqual([
      'classify[0].match.statu is unknown: use one of type, name, code, status, message, when',
      "classify[0].verdict is 'hold': use 'retry', 'dead-letter' or hold('name of what is down')",
      'classify[1] is 7: give { match, verdict }, or use retryOn() or deadLetterOn()',
      'classify[2].match is empty and would never apply: name at least one field',
      "classify[2].after is '5 m': give a number of ms, 0 or more, or a duration such as '10m'",
      "classify[3].match is undefined: give an object such as { code: 'E_LOCKED' }",
    ])
    expect(classifyProblems('retry')).toEqual(["classify is 'retry': give a list of rules, or a function"])
    expect(classifyProblems([{ match: { when: 1 }, verdict: 'retry' }])).toEqual([
      'classify[0].match.when is 1: give a function',
    ])
  })
})
