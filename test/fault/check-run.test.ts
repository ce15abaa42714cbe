/** The checker is shown what a whole run of the suite can come to, beyond what two processes do. */
import { describe, expect, it } from 'vitest'
import type { Evidence, MainRecord } from './evidence'
import type { Line } from './ledger'
import { call, found, MAIN, TIER } from './made-up'

describe('the checker finds, of a whole run', () => {
  const main = (records: { offset?: number; key?: string | null; dies?: boolean; sends?: boolean }[]): MainRecord[] =>
    records.map(({ offset = 0, key = null, dies = false, sends = false }) => ({
      place: `${MAIN}${offset}`,
      key,
      id: `r${offset}`,
      dies,
      sends,
    }))
  const moved = (
    worker: string,
    at: number,
    { lost = [], gained = [] }: { lost?: string[]; gained?: string[] },
  ): Line[] => [
    { what: 'rebalanced', worker, pid: worker.charCodeAt(0), at, tier: 'main', removed: lost.length, lost, gained },
  ]
  const window = (from: number, to: number, stall = true): NonNullable<Evidence['windows']>[number] => ({
    fault: 'made up',
    from,
    to,
    excuses: { copies: false, stall },
    recoveryMs: 1_000,
  })

  it('a second call long after the first, and lets it pass where every commit in between was refused', () => {
    const twice = [
      call({ at: 1, ends: 2 }),
      moved('B', 9_000, { gained: ['t/0'] }),
      call({ worker: 'B', at: 9_100, ends: 9_101 }),
    ]
    const refused = (at: number, tier = 'main'): Line[] => [
      { what: 'commitRefused', worker: 'A', pid: 'A'.charCodeAt(0), at, tier },
    ]
    expect(found(twice)).toMatchObject({ unexplained: 1 })
    expect(found([...twice, refused(500)])).toMatchObject({ unexplained: 0, duplicates: { revocation: 1 } })
    expect(found([...twice, refused(500, '1s')])).toMatchObject({ unexplained: 1 })
    // With exactly-once a lane commits nothing either until a transaction that has failed is taken over.
    const failed: Line[] = [{ what: 'note', text: '{"type":"publishFailed"}', worker: 'A', pid: 65, at: 500 }]
    expect(found([...twice, failed], { delivery: 'exactly-once' })).toMatchObject({ unexplained: 0 })
    expect(found([...twice, failed])).toMatchObject({ unexplained: 1 })
    const commits = new Map([['t/0', [{ at: 600, offset: 1n, done: [] }]]])
    expect(found([...twice, refused(500)], { commits })).toMatchObject({ unexplained: 1 })
  })

  it('a first call by a process whose lane another had begun anew, and lets it pass while the other has it', () => {
    const A = moved('A', 1, { gained: ['t/0'] })
    const zombie = call({ at: 1_036, ends: 1_040 })
    const again = call({ worker: 'B', at: 1_300, ends: 1_301 })
    const anew = moved('B', 1_000, { gained: ['t/0'] })
    expect(found([A, anew, zombie, again])).toMatchObject({ unexplained: 0, duplicates: { revocation: 1 } })
    // It was another lane; it was B's no more.
    expect(found([A, moved('B', 1_000, { gained: ['t/1'] }), zombie, again])).toMatchObject({ unexplained: 1 })
    expect(found([A, anew, moved('B', 1_010, { lost: ['t/0'] }), zombie, again])).toMatchObject({ unexplained: 1 })
    // What stood committed when B began the lane, B was told.
    const commits = new Map([['t/0', [{ at: 900, offset: 1n, done: [] }]]])
    expect(found([A, anew, zombie, again], { commits })).toMatchObject({ unexplained: 1 })
  })

  it('a record that was acknowledged to the producer and is nowhere', () => {
    const acknowledged = new Map([
      ['r0', 1],
      ['r1', 1],
    ])
    const more = { main: main([{}]), acknowledged }
    expect(found([call({ at: 1, ends: 2 })], more)).toMatchObject({ lost: 1, problems: [expect.stringMatching('r1')] })
  })

  it('what a handler sent and is nowhere, and lets pass what a failed one did not send', () => {
    const more = { main: main([{ sends: true }]), sent: [] }
    expect(found([call({ at: 1, ends: 2 })], more).lost).toBe(1)
    expect(found([call({ at: 1, ends: 2 })], { ...more, sent: [`${MAIN}0`] }).lost).toBe(0)
    const failed = [call({ at: 1, ends: 2, outcome: 'failed' })]
    expect(found(failed, { ...more, deadLetters: [`${MAIN}0`] }).lost).toBe(0)
  })

  it('a record that waits on a tier, and is not lost', () => {
    const failed = [call({ at: 1, ends: 2, outcome: 'failed' })]
    const hops = [{ at: `${TIER}0`, place: `${MAIN}0`, attempt: 2 }]
    expect(found(failed, { hops })).toMatchObject({ waiting: 1, lost: 0 })
    // Its call began, and nothing came of it.
    expect(found([...failed, call({ attempt: 2, at: 3 })], { hops })).toMatchObject({ waiting: 0, lost: 1 })
  })

  it('a dead letter whose handler would have succeeded', () => {
    const more = { deadLetters: [`${MAIN}0`] }
    expect(found([], { ...more, main: main([{}]) })).toMatchObject({ wronglyDead: 1, problems: [expect.anything()] })
    expect(found([], { ...more, main: main([{ dies: true }]) })).toMatchObject({ wronglyDead: 0, problems: [] })
  })

  it('a commit that went backwards', () => {
    const more = { falls: ['g t/0: from 4 to 3'] }
    expect(found([call({ at: 1, ends: 2 })], more)).toMatchObject({
      backwardsCommits: 1,
      problems: [expect.anything()],
    })
  })

  it('a hop that a reader sees twice, with exactly-once only', () => {
    const hops = [
      { at: `${TIER}0`, place: `${MAIN}0`, attempt: 2 },
      { at: `${TIER}1`, place: `${MAIN}0`, attempt: 2 },
    ]
    const lines = [call({ at: 1, ends: 2, outcome: 'failed' }), call({ attempt: 2, at: 3, ends: 4 })]
    expect(found(lines, { hops })).toMatchObject({ hopsTwice: 0 })
    expect(found(lines, { hops, delivery: 'exactly-once' })).toMatchObject({
      hopsTwice: 1,
      problems: [expect.anything()],
    })
    const other = [hops[0]!, { ...hops[1]!, attempt: 3 }]
    expect(found(lines, { hops: other, delivery: 'exactly-once' }).hopsTwice).toBe(0)
    // The last attempt's copy and the dead letter bear one number, and are two hops.
    const dead = [hops[0]!, { ...hops[1]!, reason: 'exhausted' }]
    expect(found(lines, { hops: dead, delivery: 'exactly-once' }).hopsTwice).toBe(0)
    const sent = [`${MAIN}0`, `${MAIN}0`]
    expect(found(lines, { sent, delivery: 'exactly-once' }).hopsTwice).toBe(1)
  })

  it('disorder of a key, and only of a key', () => {
    const produced = [`${MAIN}0`, `${MAIN}1`]
    const lines = [call({ offset: 1, at: 1, ends: 2 }), call({ offset: 0, at: 3, ends: 4 })]
    const of = (...keys: (string | null)[]): number =>
      found(lines, { produced, ordering: 'key', main: main(keys.map((key, offset) => ({ key, offset }))) }).disorder
    expect(of('a', 'a')).toBe(1)
    expect(of('a', 'b')).toBe(0)
    expect(of(null, null)).toBe(0)
    expect(found(lines, { produced, ordering: 'unordered' }).disorder).toBe(0)
  })

  it('disorder among records that a death repeats', () => {
    const produced = [`${MAIN}0`, `${MAIN}1`]
    const kills = new Map([['A', 100]])
    const of = (...lines: Line[][]): number => found(lines, { produced, kills }).disorder
    const again = [call({ worker: 'B', at: 200, ends: 210 }), call({ offset: 1, worker: 'B', at: 220, ends: 230 })]
    expect(of(call({ at: 50, ends: 60 }), call({ offset: 1, at: 70 }), ...again)).toBe(0)
    expect(of(call({ at: 50 }), call({ offset: 1, at: 70 }), ...again)).toBe(1)
  })

  it('a second call of a lane that did not move, though another did', () => {
    const twice = [call({ at: 900, ends: 910 }), call({ worker: 'B', at: 1500, ends: 1501 })]
    expect(found([...twice, moved('A', 1000, { lost: ['t/0'] })]).unexplained).toBe(0)
    expect(found([...twice, moved('A', 1000, { lost: ['t/1'] })]).unexplained).toBe(1)
    expect(found([...twice, moved('B', 1000, { gained: ['t/0'] })]).unexplained).toBe(0)
    expect(found([...twice, moved('B', 1000, { gained: ['t/1'] })]).unexplained).toBe(1)
  })

  it('a second call in one process long after its end, explained where another had the lane in between', () => {
    const twice = [call({ at: 900, ends: 910 }), call({ at: 9000, ends: 9001 })]
    const own = moved('A', 8000, { lost: ['t/0'], gained: ['t/0'] })
    expect(found([...twice, own]).unexplained).toBe(1)
    expect(found([...twice, own, moved('B', 1500, { gained: ['t/0'] })]).unexplained).toBe(0)
    expect(found([...twice, own, moved('B', 1500, { gained: ['t/1'] })]).unexplained).toBe(1)
    expect(found([...twice, moved('B', 1500, { gained: ['t/0'] })]).unexplained).toBe(1)
  })

  it('the call of an owner that did not know, which is explained while it had the lane before the other', () => {
    const calls = [call({ worker: 'B', at: 1100, ends: 1110 }), call({ worker: 'A', at: 2000, ends: 2010 })]
    const b = moved('B', 1000, { gained: ['t/0'] })
    expect(found([moved('A', 10, { gained: ['t/0'] }), b, ...calls])).toMatchObject({ duplicates: { revocation: 1 } })
    expect(found([moved('A', 1500, { gained: ['t/1'] }), b, ...calls]).unexplained).toBe(1)
  })

  it('a failed call that was repeated long after its copy was there, and not one that had none', () => {
    const of = (routed: boolean): number =>
      found([
        call({ at: 900, ends: 910, outcome: 'failed', routed }),
        moved('A', 9000, { lost: ['t/0'] }),
        call({ worker: 'B', at: 9100, ends: 9110 }),
      ]).unexplained
    expect(of(true)).toBe(1)
    expect(of(false)).toBe(0)
  })

  it('a death before which the second call was made', () => {
    const twice = [call({ at: 900, ends: 910 }), call({ worker: 'B', at: 1500, ends: 1501 })]
    expect(found(twice, { kills: new Map([['A', 1400]]) }).unexplained).toBe(0)
    expect(found(twice, { kills: new Map([['A', 2_900]]) }).unexplained).toBe(1)
  })

  it('a second call after the broker was seen to hold the record as done', () => {
    const lines = [
      call({ at: 900, ends: 910 }),
      moved('B', 1500, { gained: ['t/0'] }),
      call({ worker: 'B', at: 1600, ends: 1601 }),
    ]
    const kills = new Map([['A', 1000]])
    const seen = (at: number, offset: bigint, done: { from: bigint; to: bigint }[] = []): number =>
      found(lines, { kills, commits: new Map([['t/0', [{ at, offset, done }]]]) }).unexplained
    expect(seen(950, 0n)).toBe(0)
    expect(seen(950, 1n)).toBe(1)
    expect(seen(950, -1n, [{ from: 0n, to: 1n }])).toBe(1)
    // Only what was there when the lane was begun anew: later commits are the new owner's.
    expect(seen(1550, 1n)).toBe(0)
    // In one ms with its beginning anew: B called before it, out of a lane that it had lost meanwhile, and A has done the same.
    const tie = [call({ at: 1_300, ends: 1_310 }), call({ worker: 'B', at: 1_500, ends: 1_510 })]
    const held = [moved('B', 100, { gained: ['t/0'] }), moved('A', 1_200, { gained: ['t/0'] })]
    const anew = moved('B', 1_500, { gained: ['t/0'] })
    const commits = new Map([['t/0', [{ at: 1_400, offset: 1n, done: [] }]]])
    expect(found([...held, ...tie, anew], { commits }).unexplained).toBe(0)
    expect(found([...held, anew, ...tie], { commits }).unexplained).toBe(1)
  })

  it('a stall, in which no fault excuses it', () => {
    const acknowledged = new Map([
      ['r0', 1],
      ['r1', 100],
    ])
    const produced = [`${MAIN}0`, `${MAIN}1`]
    const evidence = { produced, acknowledged, main: main([{ offset: 0 }, { offset: 1 }]) }
    const lines = [call({ at: 50, ends: 60 }), call({ offset: 1, at: 5100, ends: 5101 })]
    const stall = (windows: Evidence['windows'] = []): number => found(lines, { ...evidence, windows }).longestStallMs
    expect(stall()).toBe(5000)
    expect(stall([window(2_100, 3_100)])).toBe(2000)
    expect(stall([window(2_100, 3_100, false)])).toBe(5000)
    expect(stall([window(0, 4_500)])).toBe(0)
    // Without work nobody stalls: the record came at 100.
    expect(found([call({ at: 1, ends: 2 }), call({ offset: 1, at: 101, ends: 102 })], evidence).longestStallMs).toBe(1)
  })
})
