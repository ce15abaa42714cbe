/** What the fault suite is told, and the plan it makes of it: no broker is needed for either. */
import { describe, expect, it } from 'vitest'
import { chanceOf } from './chance'
import { FAULTS } from './faults'
import { parseSuiteOptions } from './options'
import { planOf, planText } from './plan'

describe('the options of the fault suite', () => {
  it('have defaults', () => {
    const { minutes, seed, nodes, delivery, ordering, faults, list } = parseSuiteOptions([], () => 1_234_567)
    expect({ seed, nodes, delivery, ordering, list }).toEqual({
      seed: 234_567,
      nodes: 1,
      delivery: 'at-least-once',
      ordering: 'partition',
      list: false,
    })
    expect(minutes).toBeLessThan(1)
    expect(faults.length).toBeGreaterThan(10)
  })

  it.each([
    [['--minutes', '0'], "--minutes is '0', which is not more than 0 and at most 1440: give such a number"],
    [['--minutes', ''], "--minutes is ''"],
    [['--seed', '1.5'], "--seed is '1.5', which is not a whole number from 0 up"],
    [['--nodes', '2'], "--nodes is '2': give one of 1, 3"],
    [['--delivery', 'twice'], "--delivery is 'twice': give one of at-least-once, exactly-once"],
    [['--ordering', 'none'], "--ordering is 'none': give one of partition, key, unordered"],
    [['--only', 'kill,meteor'], "--only names 'meteor': there is kill, "],
    [['--only', 'leaders-move'], "--only names 'leaders-move', which needs --nodes 3, not 1"],
    [['--speed', '1'], "Unknown option '--speed'"],
  ])('%j is refused with name, value and mend', (args, message) => {
    expect(() => parseSuiteOptions(args)).toThrow(message)
  })

  it('--only takes the faults that it names, in its order', () => {
    const { faults } = parseSuiteOptions(['--only', 'term, kill,leaders-move', '--nodes', '3'])
    expect(faults.map(({ name }) => name)).toEqual(['term', 'kill', 'leaders-move'])
  })
})

describe('the plan', () => {
  it('is the same for the same seed, and another for another', () => {
    const textOf = (seed: number): string => planText(planOf(seed, 600_000, FAULTS))
    expect(textOf(1)).toBe(textOf(1))
    expect(textOf(1)).not.toBe(textOf(2))
  })

  it('has every fault alone, then overlapping ones, and never two of one resource at once', () => {
    const groups = planOf(7, 1_200_000, FAULTS)
    const alone = groups.filter(({ steps }) => steps.length === 1).map(({ steps }) => steps[0]!.fault.name)
    expect(new Set(alone).size).toBe(FAULTS.length)
    expect(groups.some(({ steps }) => steps.length === 3)).toBe(true)
    for (const { steps } of groups) expect(new Set(steps.map(({ fault }) => fault.resource)).size).toBe(steps.length)
  })

  it('has every fault in the short form too', () => {
    for (const nodes of ['1', '3']) {
      const { faults, minutes } = parseSuiteOptions(['--nodes', nodes])
      for (let seed = 0; seed < 50; seed++) {
        const groups = planOf(seed, minutes * 60_000, faults)
        expect(new Set(groups.flatMap(({ steps }) => steps.map(({ fault }) => fault)))).toEqual(new Set(faults))
      }
    }
  })

  it('lasts as long as each fault says', () => {
    for (const { steps } of planOf(3, 1_200_000, FAULTS))
      for (const { fault, lastsMs } of steps) {
        expect(lastsMs).toBeGreaterThanOrEqual(fault.lastsMs[0])
        expect(lastsMs).toBeLessThanOrEqual(fault.lastsMs[1])
      }
  })
})

it('chance is even, and a fork draws from a stream of its own', () => {
  const chance = chanceOf(5)
  const counts = [0, 0, 0, 0]
  for (let i = 0; i < 4_000; i++) counts[chance.between(0, 3)]!++
  for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(150)
  expect([...chance.shuffle([1, 2, 3, 4])].sort()).toEqual([1, 2, 3, 4])
  const [a, b] = [chanceOf(9), chanceOf(9)]
  const fork = a.fork()
  b.fork()
  fork.next()
  expect(a.next()).toBe(b.next())
})
