import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memberText } from '../../../src/dlq/json-member'

describe('the text of a member', () => {
  it('is what stands there', () => {
    const source = ' {"a" : 1.50 , "b":"x}\\"{,", "c":{ "a":[ {} , "]" ] }\t, "d":true}'
    expect(['a', 'b', 'c', 'd', 'e'].map((name) => memberText(source, name))).toEqual([
      '1.50',
      '"x}\\"{,"',
      '{ "a":[ {} , "]" ] }',
      'true',
      undefined,
    ])
  })

  it('the last of a name counts, written with escapes or without', () => {
    expect(memberText('{"a":1,"\\u0061":2}', 'a')).toBe('2')
    expect(memberText('{}', 'a')).toBeUndefined()
  })

  it('is the text of the value that JSON.parse has there, in any object, however it is spaced', () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue()).filter((value) => !Object.hasOwn(value, '__proto__'))
    fc.assert(
      fc.property(object, fc.constantFrom(undefined, 1, '\t', '\n '), (value, space) => {
        const source = JSON.stringify(value, undefined, space)
        const parsed = JSON.parse(source) as Record<string, unknown>
        for (const name of Object.keys(parsed)) expect(JSON.parse(memberText(source, name)!)).toEqual(parsed[name])
      }),
    )
  })
})
