import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LaneMarks, MAX_RESERVE } from '../../../src/consume/lane-marks'
import { CommitTracker, type Tracked } from '../../../src/consume/commit-tracker'
import { createCommitter } from '../../../src/consume/committer'
import { createTestClock } from '../../helpers/test-clock'
import { entry, lane, recorder } from './given'

const FLOOR = 4
/** For so long a reserve is to last, ms. */
const COVER = 600

/** A lane with records without end, of which each that may start does. */
function setUp() {
  let now = 0
  const marks = new LaneMarks('self', FLOOR, COVER, { monotonic: () => now })
  const state = {
    reach: 0,
    queue: { beyond: undefined as number | undefined },
    caution: undefined,
    limit: 0,
    hurryAt: 0,
    dirty: false,
  }
  // Of the commits that the broker may hold: the last acknowledged one, and one that is on its way.
  let covered = 0
  let coming = Infinity
  let passed = 0
  return {
    state,
    marks,
    start(count: number) {
      for (let n = 0; n < count; n++) {
        state.queue.beyond = state.reach < state.limit ? undefined : state.reach
        if (state.queue.beyond !== undefined) {
          marks.hurried = state.limit > 0
          return
        }
        expect(state.reach, 'a start is covered by what the broker may hold').toBeLessThan(Math.min(covered, coming))
        state.reach++
        if (state.reach >= state.hurryAt) marks.hurried = true
      }
    },
    wait(ms: number) {
      now += ms
    },
    pass(count: number) {
      passed = Math.min(state.reach, passed + count)
    },
    /** Returns what the commit says, and its acknowledgement. */
    commit() {
      const at = passed
      const draft = marks.draft(state, BigInt(at), at)
      marks.sent(state, draft)
      coming = at + (draft.marks.open?.records ?? 0)
      return {
        draft,
        acknowledge() {
          covered = coming
          coming = Infinity
          marks.acknowledge(state, draft)
        },
      }
    },
  }
}

const step = fc.oneof(
  fc.record({ op: fc.constant('start' as const), count: fc.integer({ min: 1, max: 200 }) }),
  fc.record({ op: fc.constant('pass' as const), count: fc.integer({ min: 1, max: 200 }) }),
  fc.record({ op: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 1000 }) }),
  fc.record({ op: fc.constant('commit' as const), between: fc.nat(500) }),
)

describe('crash-loop marks: how far a lane may go', () => {
  test('property: nothing starts beyond what was acknowledged, and the next commit always allows more', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { state, start, pass, wait, commit } = setUp()
        for (const one of steps) {
          if (one.op === 'start') start(one.count)
          else if (one.op === 'wait') wait(one.ms)
          else if (one.op === 'pass') pass(one.count)
          else {
            const { acknowledge } = commit()
            // What starts while it is on its way.
            start(one.between)
            acknowledge()
          }
          expect(state.limit - state.reach).toBeLessThanOrEqual(2 * MAX_RESERVE)
        }
        start(1_000_000)
        const before = state.reach
        commit().acknowledge()
        start(1)
        expect(state.reach).toBe(before + 1)
      }),
    )
  })

  test('property: a lane that starts nothing comes to a commit that says the same as the one before: no circle', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(300), { maxLength: 20 }), fc.integer({ min: 100, max: 1000 }), (bursts, interval) => {
        const { state, start, pass, wait, commit, marks } = setUp()
        commit().acknowledge()
        for (const count of bursts) {
          start(count)
          wait(interval)
          commit().acknowledge()
        }
        pass(Infinity)
        const said = Array.from({ length: 4 }, () => {
          wait(interval)
          const { draft, acknowledge } = commit()
          acknowledge()
          return draft.marks
        })
        expect(said[3]).toEqual(said[2])
        expect([marks.hurried, state.reach >= state.hurryAt]).toEqual([false, false])
      }),
    )
  })

  test('a lane that uses up what it has, as fast as commits are answered, is at full speed after a few of them', () => {
    const { state, start, wait, commit } = setUp()
    let commits = 0
    for (; state.limit - state.reach < MAX_RESERVE && commits < 30; commits++) {
      start(1_000_000)
      const { acknowledge } = commit()
      wait(8)
      acknowledge()
    }
    expect(commits).toBeLessThan(8)
  })

  test('a commit of a lane that has become slower: nothing beyond it starts while the broker may hold it already', () => {
    const { state, start, wait, pass, commit } = setUp()
    commit().acknowledge()
    for (let n = 0; n < 4; n++) {
      start(1_000_000)
      commit().acknowledge()
    }
    const { limit, reach } = state
    pass(Infinity)
    wait(10_000)
    const { acknowledge } = commit()
    expect(state.limit).toBeLessThan(limit)
    start(1_000_000)
    expect(state.reach).toBeGreaterThan(reach)
    acknowledge()
  })

  test('a commit that comes when the lane has just started nothing takes nothing away from what it may', () => {
    const { state, start, wait, commit } = setUp()
    commit().acknowledge()
    for (let lump = 0; lump < 20; lump++) {
      start(1000)
      commit().acknowledge()
      // Other lanes have asked for these.
      for (let n = 0; n < 4; n++) {
        wait(10)
        commit().acknowledge()
      }
    }
    const { reach } = state
    start(1000)
    expect(state.reach - reach, 'no wait for a commit').toBe(1000)
  })

  test('the reserve of a slow lane lasts a few commit intervals, so few records are suspicious after a death', () => {
    const { state, start, pass, wait, commit } = setUp()
    commit().acknowledge()
    start(FLOOR)
    for (let n = 0; n < 20; n++) {
      // 50 a second.
      wait(200)
      pass(10)
      start(10)
      commit().acknowledge()
    }
    expect(state.limit - state.reach).toBe((50 / 1000) * COVER)
  })
})

describe('crash-loop marks in a transaction', () => {
  test('property: asIf tells what settling would come to, and changes nothing', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(2), fc.constantFrom('open', 'settled', 'to be')), { maxLength: 30 }),
        (all) => {
          const tracker = new CommitTracker<Tracked>(5n)
          let next = 5n
          const items = all.map(([gap, what]) => {
            const offset = next + BigInt(gap)
            next = offset + 1n
            const item: Tracked = { settled: false, offset: `${offset}`, tail: undefined }
            tracker.add(item)
            return { item, what }
          })
          for (const { item, what } of items) if (what === 'settled') tracker.settle(item)
          const before = [tracker.frontier, tracker.beyond(), tracker.length]
          const chosen = items.filter(({ what }) => what === 'to be').map(({ item }) => item)
          const told = tracker.asIf(new Set(chosen))
          expect([tracker.frontier, tracker.beyond(), tracker.length]).toEqual(before)
          for (const item of chosen) tracker.settle(item)
          expect(told).toEqual({ frontier: tracker.frontier, beyond: tracker.beyond(), unpassed: tracker.length })
        },
      ),
    )
  })

  test('while one is under way no plain commit tells of its lane; of the others it does', async () => {
    const clock = createTestClock()
    const lanes = [lane(0), lane(1)]
    const sent: number[][] = []
    const committer = createCommitter({
      clock,
      emitter: recorder(clock).emitter,
      tier: 'main',
      intervalMs: 200,
      lanes: () => lanes,
      ready: () => true,
      async commit(entries) {
        sent.push(entries.map(({ partition }) => partition))
      },
      said: () => undefined,
    })
    for (const one of lanes) {
      one.open(0n, { offset: 0n, metadata: '' })
      const record = entry(0)
      one.tracker.add(record)
      one.held++
      one.settle(record)
    }
    lanes[0]!.transacting = true
    committer.poke()
    await clock.advance(2_000)
    expect(sent).toEqual([[1]])
    expect([lanes[0]!.dirty, clock.timers]).toEqual([true, 0])
    lanes[0]!.transacting = false
    committer.poke()
    await clock.advance(2_000)
    expect(sent).toEqual([[1], [0]])
  })
})
