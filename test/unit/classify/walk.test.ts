import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { NonRetryableError, RetryableError } from '../../../src/errors'
import { judge, shaped } from './helpers'

const network = (): Error => shaped('x', { code: 'ECONNREFUSED' })
const invalid = (): Error => shaped('x', { name: 'ZodError', issues: [{ message: 'no' }] })

describe('causes', () => {
  it('are walked to the bottom, past errors that nobody knows', () => {
    expect(judge(new Error('a', { cause: new Error('b', { cause: { code: 'ETIMEDOUT' } }) }))).toMatchObject({
      rule: 'network',
    })
  })

  it('may go in circles', () => {
    const a = new Error('a')
    const b = new Error('b', { cause: a })
    a.cause = b
    expect(judge(a)).toMatchObject({ rule: 'unknown' })
    const self = shaped('x')
    self.cause = self
    expect(judge(self)).toMatchObject({ rule: 'unknown' })
    Object.assign(b, { code: 'EPIPE' })
    expect(judge(a)).toMatchObject({ rule: 'network' })
  })

  it('may be 100,000 deep', () => {
    let error: object = network()
    for (let depth = 0; depth < 100_000; depth++) error = { message: 'x', cause: error }
    expect(judge(error)).toMatchObject({ rule: 'unknown' })
  })

  it('may be made anew at every look', () => {
    const endless = (): object => ({
      get cause() {
        return endless()
      },
      get errors() {
        return [endless(), endless()]
      },
      name: 'AggregateError',
    })
    expect(judge(endless())).toMatchObject({ rule: 'unknown' })
  })

  it('of an abort may stand in `reason`, which elsewhere is no error', () => {
    const reason = { code: 'ECONNREFUSED' }
    expect(judge(shaped('x', { name: 'AbortError', reason }))).toMatchObject({ rule: 'network' })
    expect(judge(shaped('x', { reason }))).toMatchObject({ rule: 'unknown' })
  })
})

describe('an AggregateError', () => {
  it('is retried when what it gathers would be', () => {
    expect(judge(new AggregateError([network(), network()]))).toMatchObject({ kind: 'retry', rule: 'network' })
  })

  it('is dead-lettered when one of its errors would be, wherever it stands', () => {
    expect(judge(new AggregateError([network(), invalid()]))).toMatchObject({ rule: 'validation' })
    expect(judge(new AggregateError([network(), new AggregateError([network(), invalid()])]))).toMatchObject({
      rule: 'validation',
    })
    expect(judge(new Error('x', { cause: new AggregateError([network(), invalid()]) }))).toMatchObject({
      rule: 'validation',
    })
  })

  it('does not count errors that nobody knows beside known ones', () => {
    expect(judge(new AggregateError([new Error('x'), network()]))).toMatchObject({ rule: 'network' })
    expect(judge(new AggregateError([new Error('x'), invalid()]))).toMatchObject({ rule: 'validation' })
    expect(judge(new AggregateError([new Error('x'), 'y', null]))).toMatchObject({ rule: 'unknown' })
    expect(judge(new AggregateError([]))).toMatchObject({ rule: 'unknown' })
  })

  it('is first taken by its own code, as Node gives one to a failed connection', () => {
    const error = Object.assign(new AggregateError([network(), invalid()], ''), { code: 'ECONNREFUSED' })
    expect(judge(error)).toMatchObject({ rule: 'network' })
  })

  it('lets what the handler says decide, wherever it stands', () => {
    expect(judge(new AggregateError([invalid(), new RetryableError('x')]))).toMatchObject({ rule: 'retryable-error' })
    expect(judge(new AggregateError([network(), new NonRetryableError('x')]))).toMatchObject({
      rule: 'non-retryable-error',
    })
  })

  it('may be kafkajs’s, a list, a SuppressedError, or gather itself', () => {
    expect(judge(shaped('x', { name: 'KafkaJSAggregateError', errors: [network()] }))).toMatchObject({
      rule: 'network',
    })
    expect(judge([network(), invalid()])).toMatchObject({ rule: 'validation' })
    expect(judge(shaped('x', { name: 'SuppressedError', error: network(), suppressed: invalid() }))).toMatchObject({
      rule: 'validation',
    })
    const self = new AggregateError([])
    self.errors.push(self, network())
    expect(judge(self)).toMatchObject({ rule: 'network' })
  })

  it('is only one where its errors are errors: validators keep other things there', () => {
    expect(judge(shaped('x', { errors: [{ code: 'ECONNREFUSED' }, 'x'] }))).toMatchObject({ rule: 'unknown' })
    expect(judge(shaped('x', { errors: [network()] }))).toMatchObject({ rule: 'network' })
  })

  it('may be a million wide', () => {
    const errors = new Array<Error>(1_000_000).fill(network())
    expect(judge(new AggregateError(errors))).toMatchObject({ rule: 'network' })
  })
})

describe('errors of another realm', () => {
  it.each([
    ['new TypeError("x")', 'bug'],
    ['JSON.parse("{")', 'syntax'],
    ['Object.assign(new Error("x"), { code: "ECONNRESET" })', 'network'],
    ['new AggregateError([Object.assign(new Error("x"), { status: 503 })])', 'http-transient'],
  ])('%s', (source, rule) => {
    const error: unknown = runInNewContext(`(() => { try { return ${source} } catch (error) { return error } })()`)
    expect(error instanceof Error).toBe(false)
    expect(judge(error)).toMatchObject({ rule })
  })
})
