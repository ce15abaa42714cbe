import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hold } from '../consume/given'
import { setUp, TIMEOUT, type Fate, type Step } from './transactions-given'

const LONG = 120_000
/** For 25 requests that fail, one after the other. */
const ALL_FATES = 600_000

describe('each hop once: one transaction at a time', () => {
  test('what is staged together goes out together, and is settled when the commit is answered and not before', async () => {
    const answer = hold<Fate>()
    const { clock, stage, results, settled, log, steps } = setUp((step) => (step === 'commit' ? answer.promise : 'ok'))
    for (let i = 0; i < 3; i++) stage()
    await clock.advance(TIMEOUT / 2)
    expect(steps).toEqual(['takeOver', 'begin', 'publish', 'offset', 'commit'])
    expect([settled, [...results]]).toEqual([[], []])
    answer.resolve('ok')
    await clock.settle()
    expect(settled).toEqual([0, 1, 2])
    expect([...results.values()]).toEqual(['acknowledged', 'acknowledged', 'acknowledged'])
    expect(log).toEqual(['r0', 'r1', 'r2'])
  })

  test('what is staged under one goes into the next, all of it', async () => {
    const answer = hold<Fate>()
    let commits = 0
    const { clock, stage, count, log, wrong } = setUp((step) =>
      step === 'commit' && ++commits === 1 ? answer.promise : 'ok',
    )
    stage()
    await clock.settle()
    for (let i = 0; i < 5; i++) stage()
    await clock.advance(TIMEOUT / 2)
    expect(count('begin')).toBe(1)
    answer.resolve('ok')
    await clock.advance(LONG)
    expect(count('begin')).toBe(2)
    expect(log).toEqual(['r0', 'r1', 'r2', 'r3', 'r4', 'r5'])
    expect(wrong).toEqual([])
  })

  test('none begins before the host allows it, or while its commit cannot be said', async () => {
    const { clock, stage, count, allow, say, log } = setUp()
    allow(false)
    stage()
    await clock.advance(LONG)
    expect(count('begin')).toBe(0)
    say(() => false)
    allow(true)
    await clock.advance(LONG)
    expect(count('begin')).toBe(0)
    say(() => true)
    allow(true)
    await clock.settle()
    expect(log).toEqual(['r0'])
  })

  test('where all together cannot be said in a commit, one goes that can', async () => {
    const { clock, stage, say, log, transactions } = setUp()
    say((entries) => entries.length === 1 && entries[0] === 1)
    stage()
    stage()
    await clock.advance(LONG)
    expect(log).toEqual(['r1'])
    expect(transactions.pending).toBe(1)
  })
})

describe('each hop once: an outcome that is not known is read, not guessed', () => {
  const failsOnce = (at: Step, fate: Fate) => {
    let left = 1
    return (step: Step): Fate => (step === at && left-- > 0 ? fate : 'ok')
  }

  test('what is sure to be aborted is told so: when the id is ours again, or when the offset that is read is another', async () => {
    for (const [step, fate, told] of [
      ['publish', 'refused', ['1 ']],
      ['offset', 'answer lost', ['1 ']],
      ['commit', 'refused', ['1 ']],
      ['commit', 'answer lost', []],
    ] as const) {
      const { clock, stage, aborted, log } = setUp(failsOnce(step, fate))
      stage()
      await clock.advance(LONG)
      expect([step, fate, aborted]).toEqual([step, fate, told])
      expect(log).toEqual(['r0'])
    }
  })

  test('it is told before anybody may compare the offset that is read', async () => {
    const second = hold<Fate>()
    let takeOvers = 0
    const { clock, stage, aborted, transactions } = setUp((step) => {
      if (step === 'takeOver' && ++takeOvers === 2) return second.promise
      return step === 'publish' && takeOvers === 1 ? 'refused' : 'ok'
    })
    stage()
    await clock.advance(TIMEOUT / 2)
    expect([transactions.ready, aborted]).toEqual([false, []])
    const over = transactions.takeOver().then(() => [...aborted])
    second.resolve('ok')
    expect(await over).toEqual(['1 '])
  })

  test.each(['answer lost', 'done, silent'] as const)('committed (%s): settled, not published again', async (fate) => {
    const { clock, stage, count, log, settled, wrong } = setUp(failsOnce('commit', fate))
    stage()
    await clock.advance(LONG)
    expect([log, settled, wrong]).toEqual([['r0'], [0], []])
    expect(count('publish')).toBe(1)
  })

  test.each(['refused', 'silent'] as const)('not committed (%s): published again', async (fate) => {
    const { clock, stage, count, log, settled, wrong } = setUp(failsOnce('commit', fate))
    stage()
    await clock.advance(LONG)
    expect([log, settled, wrong]).toEqual([['r0'], [0], []])
    expect(count('publish')).toBe(2)
    expect(count('takeOver')).toBe(2)
  })

  test.each([
    ['another offset', { offset: 7n, metadata: '' }],
    ['other metadata', { offset: 1n, metadata: '5' }],
  ])('%s is not that of the transaction in doubt', async (_, committed) => {
    const { clock, stage, commit, count } = setUp((step) => {
      if (step !== 'commit' || count('commit') > 1) return 'ok'
      commit(committed)
      return 'refused'
    })
    stage()
    await clock.advance(LONG)
    expect(count('publish')).toBe(2)
  })

  test('where the commit was never sent, the same offset proves nothing', async () => {
    const { clock, stage, commit, count, log } = setUp((step) => {
      if (step !== 'offset' || count('offset') > 1) return 'ok'
      commit({ offset: 1n, metadata: '' })
      return 'answer lost'
    })
    stage()
    await clock.advance(LONG)
    expect(count('publish')).toBe(2)
    expect(log).toEqual(['r0'])
  })

  test('who has lost the id says so, takes it back and does it again', async () => {
    const given = setUp((step) => {
      if (step === 'offset' && given.count('offset') === 1) given.steal()
      return 'ok'
    })
    given.stage()
    await given.clock.advance(LONG)
    expect(given.of('fenced')).toHaveLength(1)
    expect([given.log, given.settled, given.wrong]).toEqual([['r0'], [0], []])
  })
})

describe('each hop once: too large', () => {
  test('the one that is to blame is found, by itself, and the others are through', async () => {
    const { clock, stage, log, results, settled, wrong, of } = setUp((step, records) =>
      step === 'publish' && records.includes('r2') ? 'too large' : 'ok',
    )
    for (let i = 0; i < 5; i++) stage()
    await clock.advance(LONG)
    expect(results.get(2)).toBe('too-large')
    expect([...log].sort()).toEqual(['r0', 'r1', 'r3', 'r4'])
    expect([...settled].sort()).toEqual([0, 1, 3, 4])
    expect(wrong).toEqual([])
    expect(of('publishFailed'), 'a record is to blame, not the broker').toEqual([])
  })
})

describe('each hop once: too large, and one stands out', () => {
  test.each([
    [1, 20],
    [2, 3],
  ])('%i of %i that stand out are found at once: each failed transaction costs a take-over', async (larges, all) => {
    const large = (i: number): string => 'x'.repeat(10_000 + i)
    const { clock, stage, count, log, results } = setUp((step, records) =>
      step === 'publish' && records.some((record) => record.length >= 10_000) ? 'too large' : 'ok',
    )
    for (let i = 0; i < all; i++) stage(i < larges ? large(i) : undefined)
    await clock.advance(LONG)
    for (let i = 0; i < larges; i++) expect(results.get(i)).toBe('too-large')
    expect(log).toHaveLength(all - larges)
    // The first, one after all were refused together, and one after each was refused by itself.
    expect(count('takeOver')).toBe(2 + larges)
  })
})

describe('each hop once: close', () => {
  test.each(['begin', 'publish', 'offset'] as const)('during %s: nothing is committed any more', async (at) => {
    const answer = hold<Fate>()
    const { clock, stage, transactions, count, log, results } = setUp((step) => (step === at ? answer.promise : 'ok'))
    stage()
    await clock.settle()
    expect(count(at)).toBe(1)
    stage()
    await transactions.close()
    answer.resolve('ok')
    await clock.advance(LONG)
    expect([...results.values()]).toEqual(['closed', 'closed'])
    expect([count('commit'), log]).toEqual([0, []])
    expect(clock.timers).toBe(0)
  })

  test('takeOver() ends with it, and nothing is taken any more', async () => {
    const { clock, transactions, stage, results } = setUp(() => 'silent')
    const taking = transactions.takeOver()
    await transactions.close()
    await taking
    expect(transactions.ready).toBe(false)
    stage()
    await clock.settle()
    expect([...results.values()]).toEqual(['closed'])
  })
})

describe('each hop once: whatever fails, in any order', () => {
  const fate = fc.constantFrom<Fate>(
    'ok',
    'ok',
    'ok',
    'ok',
    'ok',
    'ok',
    'refused',
    'answer lost',
    'done, silent',
    'silent',
  )
  const happening = fc.oneof(
    { weight: 4, arbitrary: fc.constant('stage' as const) },
    { weight: 3, arbitrary: fc.constantFrom(5, 30, 300, 2_000) },
    { weight: 1, arbitrary: fc.constantFrom('steal' as const, 'forbid' as const, 'allow' as const) },
  )
  type Given = ReturnType<typeof setUp>

  async function play(fates: Fate[], story: (string | number)[]): Promise<Given> {
    const given = setUp(() => fates.shift() ?? 'ok')
    for (const one of story) {
      if (typeof one === 'number') await given.clock.advance(one)
      else if (one === 'stage') given.stage()
      else if (one === 'steal') given.steal()
      else given.allow(one === 'allow')
    }
    return given
  }

  test('every record stands once, every entry is settled once and after its commit', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fate, { minLength: 10, maxLength: 25 }),
        fc.array(happening, { maxLength: 25 }),
        async (fates, story) => {
          const staged = story.filter((one) => one === 'stage').map((_, i) => i)
          const given = await play(fates, story)
          given.allow(true)
          await given.clock.advance(ALL_FATES)
          expect(given.wrong).toEqual([])
          expect([...given.log].sort()).toEqual(staged.map((entry) => `r${entry}`).sort())
          expect([...given.settled].sort()).toEqual([...staged].sort())
          expect([...given.results.values()]).toEqual(staged.map(() => 'acknowledged'))
          expect(given.transactions.pending).toBe(0)
        },
      ),
      { numRuns: 300 },
    )
  })

  test('a close at any moment: nothing is committed after it, nothing stands twice, and everybody is told', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fate, { maxLength: 25 }),
        fc.array(happening, { maxLength: 25 }),
        async (fates, story) => {
          const given = await play(fates, story)
          const [commits, standing] = [given.count('commit'), given.log.length]
          await given.transactions.close()
          fates.length = 0
          await given.clock.advance(LONG)
          expect(given.wrong).toEqual([])
          expect([given.count('commit'), given.log.length]).toEqual([commits, standing])
          expect(new Set(given.log).size).toBe(given.log.length)
          expect(given.results.size).toBe(story.filter((one) => one === 'stage').length)
          const through = [...given.results].filter(([, result]) => result === 'acknowledged').map(([entry]) => entry)
          expect(through.sort()).toEqual([...given.settled].sort())
          expect(given.clock.timers).toBe(0)
        },
      ),
      { numRuns: 200 },
    )
  })
})
