import { describe, expect, it } from 'vitest'
import { describeError } from '../../../src/classify'
import { ofClass, shaped } from './helpers'

const NOTHING = 'it was thrown, or a promise rejected without a reason; throw an Error, which says what has happened'

describe('describeError', () => {
  it.each<[unknown, string, string]>([
    [undefined, 'undefined', NOTHING.replace('it', 'undefined')],
    [null, 'null', NOTHING.replace('it', 'null')],
    ['no stock', 'string', 'no stock'],
    [7, 'number', '7'],
    [7n, 'bigint', '7'],
    [Symbol('x'), 'symbol', 'Symbol(x)'],
    [function later() {}, 'function', 'a function was thrown: later'],
    [{ a: 1, b: 2 }, 'Object', 'an object was thrown, with a, b'],
    [{}, 'Object', 'an object was thrown, with no keys'],
    [{ message: 'mine' }, 'Object', 'mine'],
    [Object.create(null), 'object', 'an object was thrown, with no keys'],
    [[1, 2], 'Array', 'a list of 2 was thrown'],
    [new TypeError('x'), 'TypeError', 'x'],
    [new Error(''), 'Error', ''],
    [ofClass('OutOfStock', 'none left'), 'OutOfStock', 'none left'],
    [ofClass('DatabaseError', 'deadlock', { name: 'error' }), 'DatabaseError', 'deadlock'],
    [new DOMException('too late', 'TimeoutError'), 'TimeoutError', 'too late'],
    [new AggregateError([new Error('a'), new Error('b')], ''), 'AggregateError', 'a; b'],
  ])('%o', (thrown, name, message) => {
    expect(describeError(thrown)).toMatchObject({ name, message })
  })

  it('gives the code where there is one', () => {
    expect(describeError(shaped('x', { code: 'ECONNRESET' })).code).toBe('ECONNRESET')
    expect(describeError(shaped('x', { code: 14 })).code).toBe('14')
    expect(describeError(new Error('x'))).not.toHaveProperty('code')
  })

  it('gives the stack as it is, and the stacks of the causes below it', () => {
    const cause = new Error('the disk is full')
    const plain = new Error('x')
    expect(describeError(plain).stack).toBe(plain.stack)
    const outer = new Error('cannot store', { cause })
    expect(describeError(outer).stack).toBe(`${outer.stack}\ncaused by: ${cause.stack}`)
    expect(describeError('x').stack).toBeUndefined()
  })

  it('cuts message and stack at a character, by bytes', () => {
    const { message, stack } = describeError(new Error('€'.repeat(1000)), { messageBytes: 10, stackBytes: 20 })
    expect(message).toBe('€€€')
    expect(Buffer.byteLength(stack ?? '')).toBeLessThanOrEqual(20)
  })

  it('does not touch the stack of an error where none is asked for', () => {
    let reads = 0
    const error = Object.defineProperty(new Error('full'), 'stack', { get: () => `read ${++reads}` })
    expect(describeError(error, { stackBytes: 0 })).toEqual({ name: 'Error', message: 'full', stack: undefined })
    expect(reads).toBe(0)
    expect(describeError(error).stack).toBe('read 1')
  })
})
