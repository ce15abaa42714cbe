/** docs/kafkajs-faults.md names stories; each must exist, and each story of this folder must be named. */
import { describe, expect, it } from 'vitest'
import { read, ticked } from '../architecture/docs-source'
import { nodesStories } from '../unit/testing/alike/nodes/stories'
import { stories as alike } from '../unit/testing/alike/stories'
import { stories } from './stories'

describe('docs/kafkajs-faults.md', () => {
  const page = read('docs/kafkajs-faults.md')
  const items = [...page.matchAll(/^- (.*)$/gm)].map((match) => match[1] ?? '')
  const named = items.flatMap(ticked)

  it('names a story in each item, and none that is not told to both', () => {
    const told = [...Object.keys(stories), ...Object.keys(alike), ...Object.keys(nodesStories)]
    expect(named.length).toBe(items.length)
    expect(named.filter((name) => !told.includes(name))).toEqual([])
  })

  it('names each story of a trap or a rule', () => {
    expect(Object.keys(stories).filter((name) => !named.includes(name))).toEqual([])
  })

  it('has the ten traps, each with its stories', () => {
    const traps = page.split(/^\*\*(?=\d+\. )/m).slice(1)
    expect(traps.map((text) => Number.parseInt(text, 10))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    for (const text of traps) expect(text, text.slice(0, 40)).toMatch(/^- `/m)
  })
})
