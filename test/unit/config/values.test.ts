import { expect, test } from 'vitest'
import { show } from '../../../src/config'
import { parseSize } from '../../../src/config/size'

test.each<[unknown, number | undefined]>([
  [1024, 1024],
  ['64MiB', 67_108_864],
  ['64MB', 64_000_000],
  ['500 KiB', 512_000],
  ['5kB', 5000],
  ['2GB', 2_000_000_000],
  ['100B', 100],
  ['100', undefined],
  ['-1MB', undefined],
  ['1.5MB', undefined],
  ['1mb', undefined],
  ['1kiB', undefined],
  [0, undefined],
  [1.5, undefined],
  [Infinity, undefined],
  [10n, undefined],
  [null, undefined],
])('the size %s is %s', (value, bytes) => {
  expect(parseSize(value)).toBe(bytes)
})

const trap = new Proxy(
  {},
  {
    ownKeys: () => {
      throw new Error('no')
    },
  },
)

test.each<[unknown, string]>([
  ['a\nb', '"a\\nb"'],
  ['x'.repeat(1e6), `"${'x'.repeat(79)}…`],
  [7n, '7n'],
  [10n ** 500n, 'a very large bigint'],
  [Symbol('s'), 'Symbol(s)'],
  [undefined, 'undefined'],
  [null, 'null'],
  [[1, 2], 'a list of 2'],
  [{ password: 'hunter2' }, 'an object with password'],
  [Object.create(null), 'an empty object'],
  [new Date(0), '1970-01-01T00:00:00.000Z'],
  [trap, 'a value that cannot be read'],
])('a value is shown short, on one line and without its contents (%#)', (value, text) => {
  expect(show(value)).toBe(text)
})
