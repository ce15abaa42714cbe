/** docs/guarantees.md: each promise says what tests it; those files exist, and their tests carry its name. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { read, root, ticked } from './docs-source'

const PAGE = 'docs/guarantees.md'

/** What the tests of a promise that has no number carry in its place. */
const NAMES: Readonly<Record<string, RegExp>> = {
  'Completed work survives a crash': /P7\b|done-beyond/,
  Outages: /outage/i,
  'Crash loops': /crash-loop/,
  'Each hop once': /each hop/i,
  'Dead letter limit': /deadLetterLimit/,
}

const sections = new Map(
  read(PAGE)
    .split(/^## /m)
    .slice(1)
    .map((part): [string, string] => [part.slice(0, part.indexOf('\n')), part]),
)
const promised = [...sections].filter(([name]) => name !== 'Not promised')

/** The files after "Tested by". */
function filesOf(text: string): string[] {
  const [, list = ''] = /^- Tested by: ([\s\S]*?)(?=\n- |\n\n|$(?![\s\S]))/m.exec(text) ?? []
  return ticked(list)
}

describe(PAGE, () => {
  it('has every promise of DESIGN.md, in order', () => {
    const designed = [...read('DESIGN.md').matchAll(/^- \*\*(P\d+) /gm)].map((match) => match[1])
    expect(designed.length).toBeGreaterThan(12)
    expect([...sections.keys()].filter((name) => /^P\d+$/.test(name))).toEqual(designed)
  })

  it.each(promised)('%s: says what tests it and what it does not cover', (_, text) => {
    expect(filesOf(text).length).toBeGreaterThan(0)
    expect(text).toMatch(/^- Not covered: \S/m)
  })

  const named = promised.flatMap(([name, text]) => filesOf(text).map((path): [string, string] => [name, path]))

  it.each(named)('%s is in %s by name', (name, path) => {
    expect(existsSync(resolve(root, path)), `${path} exists`).toBe(true)
    const source = read(path)
    expect(source, 'it is a test').toMatch(/\b(it|test|describe\w*|scene|cases?)\b/)
    expect(`${path}\n${source}`).toMatch(NAMES[name] ?? new RegExp(`\\b${name}\\b`))
  })
})
