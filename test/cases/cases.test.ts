import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CASES, type FieldCase } from './cases'

const NUMBERS = [
  'R01 R02 R03 R04 R05 R06 R07 R08 R09 R10 R11 R12 R13 R14 R15 R18 R19 R20 R21 R22 R24',
  'R25 R26 R27 R28 R29 R30 R32 R33 R34 R35 R36 R37 R38 R40 R42',
  'R43 R44 R45 R47 R49 R50 R51 R54 R55 R56',
  'R58 R59 R60',
  'R63 R64 R65 R68',
  'R69 R70 R71',
  'R74 R75',
  'R76',
  'R77 R78 R79 R80 R82 R83',
].flatMap((section) => section.split(' '))

const files = readdirSync(import.meta.dirname)
const read = (file: string): string => readFileSync(join(import.meta.dirname, file), 'utf8')
const storyOf = ({ number }: FieldCase): string | undefined =>
  files.find((file) => file.startsWith(`${number.toLowerCase()}-`))
const told = CASES.filter(({ waitsFor }) => waitsFor === undefined)

/** Whether a runner of this kind tells the story, or the story is one itself. */
function isToldOn(kind: 'fake' | 'real', story: string): boolean {
  const runners = files.filter((file) => file.endsWith(`.${kind}.test.ts`))
  return runners.includes(story) || runners.some((runner) => read(runner).includes(`'./${story.replace(/\.ts$/, '')}'`))
}

describe('the list of field cases', () => {
  it('names every case once, in order', () => {
    expect(CASES.map(({ number }) => number)).toEqual(NUMBERS)
  })

  it('knows every story there is, and none of a case that waits', () => {
    const numbers = new Set(told.map(({ number }) => number.toLowerCase()))
    const stories = files.filter((file) => /^r\d\d-/.test(file))
    expect(stories.filter((file) => !numbers.has(file.slice(0, 3)))).toEqual([])
  })

  it.each(told)('$number ($kind) has a story, its flow first, told wherever it must be', (one) => {
    const story = storyOf(one) ?? ''
    expect(story, 'the file of the story').not.toBe('')
    expect(read(story)).toMatch(
      new RegExp(`^/\\*\\*\\n \\* ${one.number}: [^]*?\\n \\* Given [^]*?\\n \\* When [^]*?\\n \\* Then [^]*?\\*/`),
    )
    expect(isToldOn('fake', story)).toBe(one.notOnFake === undefined)
    if (one.needs === 'broker') expect(isToldOn('real', story)).toBe(true)
  })
})
