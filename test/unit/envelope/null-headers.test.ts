import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HEADER, LIMIT, nameNullHeaders, restoreNullHeaders } from '../../../src/envelope'
import type { Header } from '../../../src/record'
import { foreignHeaders } from '../record/arbitrary'

const EMPTY = Buffer.alloc(0)
const emptied = (headers: readonly Header[]): Header[] => headers.map(([name, value]) => [name, value ?? EMPTY])
const named = (text: string): Header => [HEADER.nullHeaders, Buffer.from(text)]

describe('x-null-headers', () => {
  it('P3: is exact, for repeated names too', () => {
    fc.assert(
      fc.property(foreignHeaders, (headers) => {
        const text = nameNullHeaders(headers)
        const sent = [...emptied(headers), ...(text === undefined ? [] : [named(text)])]
        expect(restoreNullHeaders(sent).slice(0, headers.length)).toEqual(headers)
      }),
    )
  })

  it('is not there where nothing is null', () => {
    expect(nameNullHeaders([])).toBeUndefined()
    expect(nameNullHeaders([['a', EMPTY]])).toBeUndefined()
  })

  it('names a header alone where all its values are null, else the places', () => {
    const headers: Header[] = [
      ['a', null],
      ['__proto__', null],
      ['b', EMPTY],
      ['a', null],
      ['b', null],
      ['', null],
    ]
    expect(nameNullHeaders(headers)).toBe('["a","__proto__",["b",1],""]')
  })

  it('makes null only of what is empty: a value that somebody set since is kept', () => {
    const headers: Header[] = [['a', Buffer.from('set')], ['b', EMPTY], named('["a","b"]')]
    expect(restoreNullHeaders(headers).slice(0, 2)).toEqual([
      ['a', Buffer.from('set')],
      ['b', null],
    ])
  })

  it.each(['', 'null', '{}', '"a"', '[1]', '[["a","b"]]', '[[]]', '[null]', '[["a",1.5]]', '['.repeat(16_000)])(
    'changes nothing where it cannot be read: %s',
    (text) => {
      const headers: Header[] = [['a', EMPTY], named(text)]
      expect(restoreNullHeaders(headers)).toBe(headers)
    },
  )

  it('changes nothing where it is null, or larger than we write it', () => {
    for (const value of [null, Buffer.from(`["a"${' '.repeat(LIMIT.nullHeaders)}]`)]) {
      const headers: Header[] = [
        ['a', EMPTY],
        [HEADER.nullHeaders, value],
      ]
      expect(restoreNullHeaders(headers)).toBe(headers)
    }
  })

  it('P4: never throws, whatever the list says', () => {
    fc.assert(
      fc.property(foreignHeaders, fc.json(), (headers, json) => {
        expect(restoreNullHeaders([...headers, named(json)])).toHaveLength(headers.length + 1)
      }),
    )
  })

  it('has room for a thousand names, and leaves out what does not fit', () => {
    const thousand = Array.from({ length: 1000 }, (_, i): Header => [`header-${i}`, null])
    expect(JSON.parse(nameNullHeaders(thousand) as string)).toHaveLength(1000)
    const tooLong: Header[] = [['x'.repeat(LIMIT.nullHeaders), null], ...thousand]
    const text = nameNullHeaders(tooLong) as string
    expect(text.length).toBeLessThanOrEqual(LIMIT.nullHeaders)
    expect(JSON.parse(text)).toHaveLength(1000)
  })
})
