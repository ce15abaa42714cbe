import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAX_METADATA, packDone, unpackCommit, unpackDone } from '../../../src/consume/done-beyond'
import { createCommitter } from '../../../src/consume/committer'
import type { Lane } from '../../../src/consume/lane'
import { draftCommit, noteAborted, noteSent } from '../../../src/consume/lane-commit'
import { LaneMarks } from '../../../src/consume/lane-marks'
import type { CommitEntry } from '../../../src/ports'
import { createTestClock } from '../../helpers/test-clock'
import { entry, hold, isSettled, lane, recorder, type Held } from './given'

const INTERVAL = 200

function setUp(lanes: Lane[]) {
  const clock = createTestClock()
  const { emitter, of } = recorder(clock)
  const requests: { entries: readonly CommitEntry[]; held: Held<void> }[] = []
  let ready = true
  let looks = 0
  const said: number[] = []
  const committer = createCommitter({
    clock,
    emitter,
    tier: 'main',
    intervalMs: INTERVAL,
    lanes: () => lanes,
    ready: () => {
      looks++
      return ready
    },
    commit(entries) {
      const held = hold()
      requests.push({ entries, held })
      return held.promise
    },
    said: (lane) => said.push(lane.partition),
  })
  return {
    clock,
    committer,
    requests,
    of,
    sent: () =>
      requests.map(({ entries }) => entries.map(({ partition, offset }) => `${partition}:${offset}`).join(' ')),
    looks: () => looks,
    setReady(now: boolean) {
      ready = now
    },
    /** Settles records up to `offset`, so that the frontier is there. */
    move(to: Lane, offset: bigint) {
      const one = entry(offset - 1n)
      to.tracker.add(one)
      to.held++
      to.settle(one)
      committer.poke()
    },
  }
}

function opened(partition = 0, at = 0n, committed: bigint | undefined = at): Lane {
  const one = lane(partition)
  one.open(at, committed === undefined ? undefined : { offset: committed, metadata: '' })
  return one
}

describe('rule 3: the committer', () => {
  test('chooses the offsets in the step in which it calls, not when it was poked', async () => {
    const a = opened()
    const { clock, move, sent } = setUp([a])
    move(a, 3n)
    const later = entry(6)
    a.tracker.add(later)
    a.held++
    expect(sent()).toEqual([])
    a.settle(later)
    await clock.advance(10)
    expect(sent()).toEqual(['0:7'])
  })

  test('has one commit in flight; what moves meanwhile goes in the next, with the others', async () => {
    const [a, b] = [opened(0), opened(1)]
    const { clock, move, sent, requests } = setUp([a, b])
    move(a, 1n)
    await clock.advance(10)
    move(a, 2n)
    move(b, 5n)
    await clock.advance(10_000)
    expect(sent()).toEqual(['0:1'])
    requests[0]!.held.resolve()
    await clock.advance(10)
    expect(sent()).toEqual(['0:1', '0:2 1:5'])
  })

  test('respects the interval between two commits, and is quick after a quiet time', async () => {
    const a = opened()
    const { clock, move, sent, requests } = setUp([a])
    move(a, 1n)
    await clock.advance(10)
    requests[0]!.held.resolve()
    await clock.settle()
    move(a, 2n)
    await clock.advance(INTERVAL - 1)
    expect(sent()).toEqual(['0:1'])
    await clock.advance(1)
    expect(sent()).toEqual(['0:1', '0:2'])
    requests[1]!.held.resolve()
    await clock.advance(60_000)
    move(a, 3n)
    await clock.advance(10)
    expect(sent()).toEqual(['0:1', '0:2', '0:3'])
  })

  test('after a failure the offsets are chosen anew, later and later, and never sent again as they were', async () => {
    const a = opened()
    const { clock, move, sent, requests, of } = setUp([a])
    move(a, 1n)
    await clock.advance(10)
    const waits: number[] = []
    for (let i = 1; i <= 9; i++) {
      requests.at(-1)!.held.reject(new Error('not the coordinator'))
      await clock.settle()
      move(a, BigInt(i + 1))
      waits.push(clock.nextIn!)
      await clock.advance(clock.nextIn!)
    }
    expect(sent()).toEqual(['0:1', '0:2', '0:3', '0:4', '0:5', '0:6', '0:7', '0:8', '0:9', '0:10'])
    expect(waits).toEqual([200, 200, 400, 800, 1600, 3200, 5000, 5000, 5000])
    expect(of('commitFailed')).toHaveLength(9)
    requests.at(-1)!.held.resolve()
    await clock.settle()
    expect(a.committed?.offset).toBe(10n)
    expect(clock.timers).toBe(0)
  })

  test('a failed commit is tried anew without a further poke', async () => {
    const a = opened()
    const { clock, move, sent, requests } = setUp([a])
    move(a, 1n)
    await clock.advance(10)
    requests[0]!.held.reject(new Error('cut'))
    await clock.advance(INTERVAL)
    expect(sent()).toEqual(['0:1', '0:1'])
  })

  test('remembers what was sent and perhaps stored, until a later offset is acknowledged', async () => {
    const a = opened()
    const { clock, move, requests } = setUp([a])
    move(a, 1n)
    await clock.advance(10)
    requests[0]!.held.reject(new Error('the answer was lost'))
    await clock.settle()
    expect(a.sent.map(({ offset }) => offset)).toEqual([1n])
    move(a, 4n)
    await clock.advance(INTERVAL)
    expect(a.sent.map(({ offset }) => offset)).toEqual([1n, 4n])
    requests[1]!.held.resolve()
    await clock.settle()
    expect(a.sent.map(({ offset }) => offset)).toEqual([])
    expect(a.committed?.offset).toBe(4n)
  })
})

describe('P1, P7: what is never committed', () => {
  test('an offset that is not above the acknowledged one', async () => {
    const a = opened(0, 5n, 9n)
    const { clock, move, sent } = setUp([a])
    move(a, 7n)
    await clock.advance(10)
    expect(sent()).toEqual([])
    expect(clock.timers).toBe(0)
    move(a, 10n)
    await clock.advance(10)
    expect(sent()).toEqual(['0:10'])
  })

  test('rule 6: an offset of a lane that is not open', async () => {
    const lanes = [opened(0), opened(1), opened(2)]
    const { clock, move, sent, committer } = setUp(lanes)
    for (const one of lanes) move(one, 3n)
    lanes[0]!.state = 'verifying'
    lanes[1]!.close()
    await clock.advance(10)
    expect(sent()).toEqual(['2:3'])
    committer.now()
    expect(sent()).toEqual(['2:3'])
  })

  test('says what is settled beyond the frontier, and again when that alone has changed', async () => {
    const a = opened()
    const { clock, requests, committer } = setUp([a])
    const [stuck, ...others] = [0, 1, 2, 3].map((offset) => entry(offset))
    for (const one of [stuck!, ...others]) a.tracker.add(one)
    for (const one of others) {
      a.settle(one)
      committer.poke()
      await clock.advance(1_000)
      requests.at(-1)!.held.resolve()
      await clock.settle()
    }
    const sent = requests.map(({ entries: [only] }) => [only!.offset, unpackDone(only!.offset, only!.metadata)])
    expect(sent).toEqual([2n, 3n, 4n].map((to) => [0n, [{ from: 1n, to }]]))
    committer.poke()
    await clock.advance(1_000)
    expect(requests).toHaveLength(3)
  })

  test('a broker that takes so much metadata no more gets commits without it, and one line that says so', async () => {
    const a = opened()
    const { clock, requests, committer, of } = setUp([a])
    for (const one of [0, 1, 2].map((offset) => entry(offset))) {
      a.tracker.add(one)
      if (one.offset !== '1') a.settle(one)
    }
    committer.poke()
    await clock.advance(1_000)
    expect(requests[0]!.entries[0]!.metadata).not.toBe('')
    requests[0]!.held.reject(Object.assign(new Error('too large'), { type: 'OFFSET_METADATA_TOO_LARGE' }))
    await clock.advance(1_000)
    expect(requests[1]!.entries).toMatchObject([{ offset: 1n, metadata: '' }])
    requests[1]!.held.resolve()
    await clock.advance(10_000)
    expect(requests).toHaveLength(2)
    expect(of('problem')).toMatchObject([{ error: expect.stringContaining('offset.metadata.max.bytes') }])
  })

  test('a lane whose metadata fills up holds back until its frontier moves', async () => {
    const a = opened()
    const { clock, requests, committer } = setUp([a])
    const all = Array.from({ length: 40_000 }, (_, offset) => entry(offset))
    for (const one of all) a.tracker.add(one)
    // No pattern that either form makes short: every 11th record is stuck.
    for (const one of all) if (Number(one.offset) % 11 !== 0) a.settle(one)
    committer.poke()
    await clock.advance(1_000)
    expect(a.crowded).toBe(true)
    expect(requests[0]!.entries[0]!.metadata.length).toBeLessThanOrEqual(MAX_METADATA)
    a.settle(all[0]!)
    expect(a.crowded).toBe(false)
  })

  test('exactly once: where there is no room for all, what was published is said, with the marks, and proves that the lane is ours', async () => {
    const a = opened(0, 0n, undefined)
    a.committed = a.known = { offset: 0n, metadata: packDone(0n, [{ from: 1n, to: 3n }]) }
    a.transactions = { pending: 0 } as never
    const { clock, requests, committer } = setUp([a])
    a.marks = new LaneMarks('AbCd', 16, 600, clock)
    a.unproven = true
    const all = Array.from({ length: 40_000 }, (_, offset) => entry(offset))
    for (const one of all) a.tracker.add(one)
    a.added = all.length
    for (const one of all) if (Number(one.offset) % 11 !== 0) a.settle(one)
    // A suspicious record waits for its mark.
    const running = { offset: 11n, deaths: { count: 1, by: ['dead'] }, counts: true }
    a.caution = { until: 20, by: 'dead', suspects: new Map(), running }
    committer.poke()
    await clock.advance(1_000)
    const [{ offset, metadata }] = requests[0]!.entries as [CommitEntry]
    expect(unpackCommit(offset, metadata)).toMatchObject({
      done: [{ from: 1n, to: 3n }],
      marks: { open: { by: 'AbCd' }, suspects: [{ offset: 11n, deaths: 1, by: ['dead'], running: true }] },
    })
    requests[0]!.held.resolve()
    await clock.settle()
    expect([a.unproven, a.crowded, a.marks.acknowledged]).toEqual([false, true, running])
    // What is to be published is said too, in place of what was only handled.
    const draft = committer.asIf(a, [all[22]!, all[11]!])!
    expect(unpackCommit(draft.offset, draft.metadata)?.done).toEqual([
      { from: 1n, to: 3n },
      { from: 11n, to: 12n },
      { from: 22n, to: 23n },
    ])
    // The frontier moves on over what is settled, whatever is said.
    expect(committer.asIf(a, [all[0]!])?.offset).toBe(11n)
  })

  test('a transaction that was aborted is none of ours that may be stored', () => {
    const a = opened()
    const [plain, other] = [draftCommit(a), { ...draftCommit(a), offset: 1n }]
    noteSent(a, plain)
    noteSent(a, other)
    noteAborted(a, other)
    expect(a.sent.map(({ offset }) => offset)).toEqual([0n])
  })

  test('an acknowledgement that comes late does not take back what is known to be committed', async () => {
    const a = opened()
    const { clock, move, requests } = setUp([a])
    move(a, 3n)
    await clock.advance(10)
    a.committed = { offset: 8n, metadata: '' }
    requests[0]!.held.resolve()
    await clock.settle()
    expect(a.committed?.offset).toBe(8n)
  })

  test('property: acknowledged or not, the offsets sent for a lane never fall, and one request is under way at most', async () => {
    const step = fc.oneof(
      fc.record({ op: fc.constant('move' as const), lane: fc.nat(1), by: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ op: fc.constant('time' as const), ms: fc.nat(6_000) }),
      fc.record({ op: fc.constant('answer' as const), ok: fc.boolean() }),
      fc.record({ op: fc.constant('ready' as const), now: fc.boolean() }),
      fc.record({ op: fc.constant('now' as const) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const lanes = [opened(0), opened(1)]
        const at = [0n, 0n]
        const { clock, move, requests, committer, setReady } = setUp(lanes)
        let answered = 0
        const answer = async (ok: boolean): Promise<void> => {
          const request = requests[answered]
          if (!request) return
          answered++
          if (ok) request.held.resolve()
          else request.held.reject(new Error('no'))
          await clock.settle()
        }
        for (const one of steps) {
          if (one.op === 'move') {
            at[one.lane]! += BigInt(one.by)
            move(lanes[one.lane]!, at[one.lane]!)
          } else if (one.op === 'time') await clock.advance(one.ms)
          else if (one.op === 'answer') await answer(one.ok)
          else if (one.op === 'ready') setReady(one.now)
          else committer.now()
          expect(requests.length - answered).toBeLessThanOrEqual(1)
        }
        setReady(true)
        await answer(true)
        for (let i = 0; i < 3; i++) {
          await clock.advance(6_000)
          await answer(true)
        }
        expect(lanes.map(({ committed }) => committed?.offset)).toEqual(at)
        for (const partition of [0, 1]) {
          const offsets = requests.flatMap(({ entries }) => entries.filter((e) => e.partition === partition))
          for (let i = 1; i < offsets.length; i++) expect(offsets[i]!.offset >= offsets[i - 1]!.offset).toBe(true)
        }
        expect(clock.timers).toBe(0)
      }),
      { numRuns: 60 },
    )
  })
})

test('not ready (crashed, not joined): nothing is sent, and it is looked at again, once in a while', async () => {
  const a = opened()
  const { clock, move, sent, setReady, looks } = setUp([a])
  setReady(false)
  move(a, 1n)
  await clock.advance(60_000)
  expect(sent()).toEqual([])
  expect(looks()).toBeLessThan(80)
  setReady(true)
  await clock.advance(1_000)
  expect(sent()).toEqual(['0:1'])
})

test('not ready, until it is told that it may be: then it is soon', async () => {
  const a = opened()
  const { clock, move, sent, setReady, committer } = setUp([a])
  setReady(false)
  move(a, 1n)
  await clock.advance(60_000)
  committer.awake()
  await clock.advance(10)
  expect(sent()).toEqual([])
  setReady(true)
  committer.awake()
  await clock.advance(10)
  expect(sent()).toEqual(['0:1'])
})

test('not ready, and the lanes are gone (crashed): it is not looked at again', async () => {
  const a = opened()
  const lanes = [a]
  const { clock, move, setReady } = setUp(lanes)
  setReady(false)
  move(a, 1n)
  lanes.length = 0
  await clock.advance(1_000)
  expect(clock.timers).toBe(0)
})

test('rule 13: now() sends inside the call, without its timer', async () => {
  const a = opened()
  const { clock, move, sent, committer, requests } = setUp([a])
  move(a, 1n)
  committer.now()
  expect(sent()).toEqual(['0:1'])
  expect(clock.timers).toBe(0)
  move(a, 2n)
  committer.now()
  expect(sent()).toEqual(['0:1'])
  requests[0]!.held.resolve()
  await clock.advance(INTERVAL)
  expect(sent()).toEqual(['0:1', '0:2'])
})

describe('P9: flush', () => {
  const never = (): boolean => false

  test('waits for the commit under way, then commits what is left, and ends', async () => {
    const a = opened()
    const { clock, move, sent, committer, requests } = setUp([a])
    move(a, 1n)
    await clock.advance(10)
    move(a, 2n)
    const flushed = committer.flush(3, never)
    await clock.settle()
    expect(sent()).toEqual(['0:1'])
    requests[0]!.held.resolve()
    await clock.settle()
    expect(sent()).toEqual(['0:1', '0:2'])
    requests[1]!.held.resolve()
    await clock.settle()
    await flushed
    expect(clock.timers).toBe(0)
  })

  test('ends after so many refusals', async () => {
    const a = opened()
    const { clock, move, sent, committer, requests } = setUp([a])
    move(a, 1n)
    const flushed = committer.flush(3, never)
    for (let i = 0; i < 3; i++) {
      await clock.settle()
      requests[i]!.held.reject(new Error('no'))
    }
    await clock.settle()
    await flushed
    expect(sent()).toEqual(['0:1', '0:1', '0:1'])
    expect(clock.timers).toBe(0)
  })

  test('ends where it has expired, where the client is not ready, and where there is nothing', async () => {
    const a = opened()
    const { clock, move, sent, committer, setReady } = setUp([a])
    const idle = committer.flush(3, never)
    await clock.settle()
    await idle
    move(a, 1n)
    await committer.flush(3, () => true)
    setReady(false)
    const crashed = committer.flush(3, never)
    await clock.settle()
    await crashed
    expect(sent()).toEqual([])
    expect(clock.timers).toBe(0)
  })

  test('a commit that is never answered keeps it waiting: its caller bounds it', async () => {
    const a = opened()
    const { clock, move, committer } = setUp([a])
    move(a, 1n)
    const flushed = committer.flush(3, never)
    await clock.settle()
    expect(await isSettled(flushed)).toBe(false)
  })

  test('after close() nothing is sent and no timer is left', async () => {
    const a = opened()
    const { clock, move, sent, committer } = setUp([a])
    move(a, 1n)
    committer.close()
    expect(clock.timers).toBe(0)
    committer.poke()
    committer.now()
    await clock.advance(60_000)
    expect(sent()).toEqual([])
  })
})
