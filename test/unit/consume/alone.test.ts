import { describe, expect, test } from 'vitest'
import { Alone, PATIENCE_MS } from '../../../src/consume/alone'
import { createTestClock } from '../../helpers/test-clock'

function setUp() {
  const clock = createTestClock()
  const alone = new Alone()
  const said: string[] = []
  let atWork = 0
  const leave = alone.join({ atWork: () => atWork, goOn: () => said.push('go on') })
  return {
    clock,
    alone,
    said,
    leave,
    ask: (name: string) =>
      alone.ask(clock, {
        granted: (yes) => said.push(`${name}: ${yes ? 'alone' : 'beside others'}`),
        late: () => said.push(`${name}: late`),
      }),
    work(count: number) {
      atWork = count
      alone.look()
    },
  }
}

describe('crash-loop suspects alone in the process', () => {
  test('at once where nothing is at work; else when the last has ended; open again at the end', () => {
    const { alone, said, ask, work } = setUp()
    work(2)
    const turn = ask('a')
    expect([alone.closed, alone.taken, said]).toEqual([true, false, []])
    work(1)
    expect(said).toEqual([])
    work(0)
    expect([alone.taken, said]).toEqual([true, ['a: alone']])
    turn.end()
    turn.end()
    expect([alone.closed, alone.taken, said]).toEqual([false, false, ['a: alone', 'go on']])
    ask('b')
    expect(said.at(-1)).toBe('b: alone')
  })

  test('several take turns, and the gate opens behind the last; who gives up has none', () => {
    const { said, ask } = setUp()
    const [a, b, c] = [ask('a'), ask('b'), ask('c')]
    b.end()
    a.end()
    expect(said).toEqual(['a: alone', 'c: alone'])
    c.end()
    expect(said.slice(2)).toEqual(['go on'])
  })

  test('who has waited for long behind a handler that does not end goes on beside it', async () => {
    const { clock, alone, said, ask, work } = setUp()
    work(1)
    const turn = ask('a')
    await clock.advance(PATIENCE_MS - 1)
    expect(said).toEqual([])
    await clock.advance(1)
    expect(said).toEqual(['go on', 'a: beside others'])
    expect(alone.closed).toBe(false)
    turn.end()
    expect([said.length, clock.timers]).toEqual([2, 0])
  })

  test('who has its turn for long is told; who waits behind it goes on waiting, and gets its own', async () => {
    const { clock, said, ask } = setUp()
    const a = ask('a')
    const b = ask('b')
    await clock.advance(3 * PATIENCE_MS)
    expect(said).toEqual(['a: alone', 'a: late'])
    a.end()
    expect(said.at(-1)).toBe('b: alone')
    b.end()
    expect([said.at(-1), clock.timers]).toEqual(['go on', 0])
  })

  test('a group that leaves holds nobody up', () => {
    const { said, ask, work, leave } = setUp()
    work(1)
    ask('a')
    leave()
    expect(said).toEqual(['a: alone'])
  })
})
