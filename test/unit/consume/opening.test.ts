import { describe, expect, test } from 'vitest'
import type { Lane } from '../../../src/consume/lane'
import { packDone } from '../../../src/consume/done-beyond'
import { openLanes } from '../../../src/consume/opening'
import type { CommitEntry, CommittedOffset, LogRange, TopicAdmin } from '../../../src/ports'
import { createTestClock } from '../../helpers/test-clock'
import { hold, isSettled, lane, recorder } from './given'

interface Given {
  startFrom?: 'earliest' | 'latest' | number
  /** What groups of before have committed of `orders/0`. */
  former?: Record<string, bigint>
  /** What the group has committed, by `topic/partition`. */
  committed?: Record<string, bigint>
  /** And with which metadata. */
  metadata?: Record<string, string>
  /** [low, high] by partition, for each topic. */
  logs?: Record<string, [bigint, bigint][]>
}

function setUp(given: Given) {
  const { startFrom = 'earliest', committed = {}, metadata = {}, logs = { orders: [[0n, 100n]] }, former = {} } = given
  const formerGroups = Object.keys(former)
  const clock = createTestClock()
  const { emitter, of } = recorder(clock)
  const calls: string[] = []
  const commits: string[] = []
  const failing: Record<string, unknown[]> = {}
  let epoch = 1
  let stopped = false
  let ready = true
  let gate: Promise<unknown> = Promise.resolve()
  /** What a look-up that waits for all that was acknowledged tells, where it is to be more than the plain one. */
  let settled: readonly CommittedOffset[] | undefined
  const called = async (name: string): Promise<void> => {
    calls.push(name)
    await gate
    const error = failing[name]?.shift()
    if (error !== undefined) throw error
  }
  const admin = {
    async committed(group: string, topics: readonly string[]) {
      if (group in former) return [{ topic: 'orders', partition: 0, offset: former[group]!, metadata: null }]
      await called('committed')
      return topics.flatMap((topic) =>
        (logs[topic] ?? []).map((_, partition) => ({
          topic,
          partition,
          offset: committed[`${topic}/${partition}`] ?? -1n,
          metadata: metadata[`${topic}/${partition}`] ?? null,
        })),
      )
    },
    async ranges(topic: string) {
      await called('ranges')
      return (logs[topic] ?? []).map(([low, high], partition): LogRange => ({ topic, partition, low, high }))
    },
    async offsetsAt(_topic: string, time: number) {
      await called(`offsetsAt ${time}`)
      return new Map([[0, 42n]])
    },
  } as unknown as TopicAdmin
  const done: string[] = []
  const open = (lanes: readonly Lane[]): Promise<void> =>
    openLanes(
      {
        admin,
        emitter,
        wait: (ms) => new Promise((resolve) => void clock.after(ms, resolve)),
        groupId: 'billing',
        startFrom,
        formerGroups,
        epoch: () => epoch,
        stopped: () => stopped,
        ready: () => ready,
        settledOffsets: () => Promise.resolve(settled),
        async commit(entries: readonly CommitEntry[]) {
          await called('commit')
          for (const { topic, partition, offset } of entries) {
            committed[`${topic}/${partition}`] = offset
            commits.push(`${topic}/${partition}@${offset}`)
          }
        },
        open(lane, position, committed, { done: beyond }) {
          lane.open(position, committed, beyond)
          done.push(`open ${lane.topic}/${lane.partition} at ${position}, committed ${committed?.offset ?? 'nothing'}`)
          if (beyond.length > 0) done.push(`done ${beyond.map(({ from, to }) => `${from}-${to - 1n}`).join(' ')}`)
        },
        goOn(lane) {
          lane.state = 'open'
          done.push(`go on ${lane.topic}/${lane.partition}`)
        },
        reopen(lane, committed, { done: beyond }) {
          lane.close()
          done.push(`reopen ${lane.topic}/${lane.partition} at ${committed.offset}`)
          if (beyond.length > 0) done.push(`done ${beyond.map(({ from, to }) => `${from}-${to - 1n}`).join(' ')}`)
        },
        remade(lane, low) {
          lane.close()
          done.push(`remade ${lane.topic}/${lane.partition} at ${low}`)
        },
      },
      lanes,
    )
  return {
    clock,
    of,
    calls,
    commits,
    committed,
    done,
    failing,
    open,
    assignAnew: () => void epoch++,
    stop: () => void (stopped = true),
    settle: (offset: bigint) => void (settled = [{ topic: 'orders', partition: 0, offset, metadata: null }]),
    setReady: (now: boolean) => void (ready = now),
    holdAnswers() {
      const held = hold()
      gate = held.promise
      return () => held.resolve()
    },
  }
}

/** A lane that was open before the rebalance. */
function kept(committed: bigint | undefined, partition = 0): Lane {
  const one = lane(partition)
  one.open(committed ?? 0n, committed === undefined ? undefined : { offset: committed, metadata: '' })
  one.state = 'verifying'
  return one
}

describe('a coordinator that is new and answers from before its time', () => {
  test('a lane begins where the look-up that waits for all commits says', async () => {
    const { open, done, settle } = setUp({ committed: { 'orders/0': 47n } })
    settle(48n)
    await open([lane()])
    expect(done).toEqual(['open orders/0 at 48, committed 48'])
  })

  test('a kept lane whose last commit was acknowledged goes on', async () => {
    const { open, done, settle } = setUp({ committed: { 'orders/0': 47n } })
    settle(48n)
    await open([kept(48n)])
    expect(done).toEqual(['go on orders/0'])
  })
})

describe('rule 7: where a lane begins', () => {
  test('at the committed offset, whatever startFrom says', async () => {
    for (const startFrom of ['earliest', 'latest', 12345] as const) {
      const { open, done, calls } = setUp({ startFrom, committed: { 'orders/0': 7n } })
      await open([lane()])
      expect(done).toEqual(['open orders/0 at 7, committed 7'])
      expect(calls).toEqual(['committed'])
    }
  })

  test('groups of before: at the least that they had come to, but not before the first offset that is still there', async () => {
    const cases: [Record<string, bigint>, number][] = [
      [{ old: 40n }, 40],
      [{ old: 40n, older: 12n }, 12],
      [{ old: 40n, never: -1n }, 40],
      [{ old: 2n }, 5],
      [{ never: -1n }, 5],
    ]
    for (const [former, at] of cases) {
      const { open, done } = setUp({ former, logs: { orders: [[5n, 100n]] } })
      await open([lane()])
      expect(done).toEqual([`open orders/0 at ${at}, committed nothing`])
    }
  })

  test('earliest: at the first offset that is still there, which is then committed', async () => {
    const { open, done } = setUp({
      logs: {
        orders: [
          [5n, 100n],
          [0n, 9n],
        ],
      },
    })
    const lanes = [lane(0), lane(1)]
    await open(lanes)
    expect(done).toEqual(['open orders/0 at 5, committed nothing', 'open orders/1 at 0, committed nothing'])
    expect(lanes.map(({ dirty, tracker }) => [dirty, tracker.frontier])).toEqual([
      [true, 5n],
      [true, 0n],
    ])
  })

  test('latest: who holds the first partition decides for all of a topic without any commit, and then reads what stands', async () => {
    const { open, done, commits, clock } = setUp({
      startFrom: 'latest',
      logs: {
        orders: [
          [0n, 100n],
          [0n, 9n],
        ],
      },
    })
    const opening = open([lane(0)])
    await clock.advance(100)
    await opening
    expect(commits).toEqual(['orders/0@100', 'orders/1@9'])
    expect(done).toEqual(['open orders/0 at 100, committed 100'])
  })

  test('latest: the others wait until the decision stands, the leader of the group too', async () => {
    const { open, done, commits, committed, clock } = setUp({
      startFrom: 'latest',
      logs: {
        orders: [
          [0n, 100n],
          [0n, 9n],
        ],
      },
    })
    const opening = open([lane(1)])
    await clock.advance(1_000)
    expect([done, commits, await isSettled(opening)]).toEqual([[], [], false])
    committed['orders/0'] = 98n
    committed['orders/1'] = 8n
    await clock.advance(100)
    await opening
    expect(done).toEqual(['open orders/1 at 8, committed 8'])
  })

  test('a Date: at the first record of that time; a partition without such a record at its end', async () => {
    const { open, done, calls, clock } = setUp({
      startFrom: 12345,
      logs: {
        orders: [
          [0n, 100n],
          [0n, 9n],
        ],
      },
    })
    const opening = open([lane(0), lane(1)])
    await clock.advance(100)
    await opening
    expect(calls).toContain('offsetsAt 12345')
    expect(done).toEqual(['open orders/0 at 42, committed 42', 'open orders/1 at 9, committed 9'])
  })

  test('latest: a partition without a commit beside siblings that have one is new, and read from its beginning', async () => {
    const { open, done, commits } = setUp({
      startFrom: 'latest',
      committed: { 'orders/0': 50n },
      logs: {
        orders: [
          [0n, 100n],
          [3n, 9n],
        ],
      },
    })
    await open([lane(0), lane(1)])
    expect(done).toEqual(['open orders/0 at 50, committed 50', 'open orders/1 at 3, committed nothing'])
    expect(commits).toEqual([])
  })

  test('latest: each topic is decided by itself', async () => {
    const { open, done, commits, clock } = setUp({
      startFrom: 'latest',
      committed: { 'orders/0': 50n },
      logs: { orders: [[0n, 100n]], refunds: [[0n, 5n]] },
    })
    const opening = open([lane(0), lane(0, { topic: 'refunds' })])
    await clock.advance(100)
    await opening
    expect(commits).toEqual(['refunds/0@5'])
    expect(done).toEqual(['open orders/0 at 50, committed 50', 'open refunds/0 at 5, committed 5'])
  })

  test('rule 4: no decision is sent before the client can commit', async () => {
    const { open, commits, clock, setReady } = setUp({ startFrom: 'latest' })
    setReady(false)
    const opening = open([lane()])
    await clock.advance(1_000)
    expect(commits).toEqual([])
    setReady(true)
    await clock.advance(200)
    await opening
    expect(commits).toEqual(['orders/0@100'])
  })
})

describe('rule 1: an offset that kafkajs has written over with -2, since it had left the log', () => {
  test.each(['earliest', 'latest', 12345] as const)(
    'begins at the beginning, and tells what is gone: %s',
    async (startFrom) => {
      const logs: Record<string, [bigint, bigint][]> = { orders: [[30n, 100n]] }
      const { open, done, of, commits } = setUp({ startFrom, committed: { 'orders/0': -2n }, logs })
      await open([lane()])
      expect(done).toEqual(['open orders/0 at 30, committed nothing'])
      expect(of('gone')).toMatchObject([{ topic: 'orders', partition: 0, from: '?', to: '30' }])
      expect(commits).toEqual([])
    },
  )
})

describe('rule 6: whether a kept lane may go on', () => {
  test('it does where the broker holds what it last committed', async () => {
    const { open, done } = setUp({ committed: { 'orders/0': 7n } })
    await open([kept(7n)])
    expect(done).toEqual(['go on orders/0'])
  })

  test('it does where the broker holds what it sent without hearing the answer', async () => {
    const { open, done } = setUp({ committed: { 'orders/0': 9n } })
    const one = kept(7n)
    one.sent.push({ offset: 9n, metadata: '' })
    await open([one])
    expect(done).toEqual(['go on orders/0'])
    expect(one.committed?.offset).toBe(9n)
  })

  test('P1: what the commit says is done beyond it is passed over', async () => {
    const text = packDone(7n, [{ from: 9n, to: 12n }])
    const { open, done } = setUp({ committed: { 'orders/0': 7n }, metadata: { 'orders/0': text } })
    await open([lane()])
    expect(done).toEqual(['open orders/0 at 7, committed 7', 'done 9-11'])
  })

  test('metadata of another tool counts for nothing, and is told', async () => {
    const { open, done, of } = setUp({ committed: { 'orders/0': 7n }, metadata: { 'orders/0': 'host-1' } })
    await open([lane()])
    expect(done).toEqual(['open orders/0 at 7, committed 7'])
    expect(of('metadata')).toMatchObject([{ topic: 'orders', partition: 0, offset: '7', length: 6 }])
  })

  test('P7: somebody else was at work too where the offset is ours and what is done beyond it is not', async () => {
    const text = packDone(7n, [{ from: 9n, to: 12n }])
    const { open, done } = setUp({ committed: { 'orders/0': 7n }, metadata: { 'orders/0': text } })
    await open([kept(7n)])
    expect(done).toEqual(['reopen orders/0 at 7', 'done 9-11'])
  })

  test('P7: else somebody else was at work: it is dropped and begun anew at the broker offset', async () => {
    for (const broker of [12n, 3n]) {
      const { open, done, of } = setUp({ committed: { 'orders/0': broker } })
      await open([kept(7n)])
      expect(done).toEqual([`reopen orders/0 at ${broker}`])
      expect(of('reopened')).toMatchObject([{ ours: '7', broker: `${broker}` }])
    }
  })

  test('rule 1: where kafkajs wrote -2 over it, as the log was cut below it, it goes on and says its offset again', async () => {
    const { open, done } = setUp({ committed: { 'orders/0': -2n }, logs: { orders: [[9n, 20n]] } })
    const one = kept(7n)
    await open([one])
    expect(done).toEqual(['go on orders/0'])
    expect([one.committed, one.dirty]).toEqual([undefined, true])
  })

  test('so does one whose first commit is not there yet', async () => {
    const { open, done } = setUp({ committed: { 'orders/0': -1n }, logs: { orders: [[0n, 20n]] } })
    const one = kept(7n)
    one.committed = undefined
    await open([one])
    expect(done).toEqual(['go on orders/0'])
  })

  test('so does one whose first commit is acknowledged while it is asked for', async () => {
    const { open, done, holdAnswers } = setUp({ committed: { 'orders/0': -1n }, logs: { orders: [[0n, 20n]] } })
    const one = kept(7n)
    one.committed = undefined
    const answer = holdAnswers()
    const opened = open([one])
    one.committed = { offset: 7n, metadata: '' }
    answer()
    await opened
    expect(done).toEqual(['go on orders/0'])
  })

  test('P1: where the log is another one, since the topic was made anew, it is begun anew at the beginning', async () => {
    const another: [bigint, [bigint, bigint]][] = [
      [-1n, [0n, 3n]], // our commit went with the old topic
      [-1n, [0n, 30n]],
      [-2n, [0n, 3n]], // kafkajs has found its position gone
      [-2n, [0n, 30n]],
    ]
    for (const [broker, log] of another) {
      const { open, done } = setUp({ committed: { 'orders/0': broker }, logs: { orders: [log] } })
      await open([kept(7n)])
      expect(done).toEqual(['remade orders/0 at 0'])
    }
  })

  test('a lane that was still opening at the rebalance is opened', async () => {
    const { open, done } = setUp({ committed: { 'orders/0': 7n } })
    await open([lane(), kept(3n, 1)])
    expect(done).toContain('open orders/0 at 7, committed 7')
  })
})

describe('rule 6: answers of a former assignment are thrown away', () => {
  test('of committed offsets', async () => {
    const { open, done, holdAnswers, assignAnew, clock } = setUp({ committed: { 'orders/0': 7n } })
    const answer = holdAnswers()
    const opening = open([lane()])
    assignAnew()
    answer()
    await opening
    expect(done).toEqual([])
    expect(clock.timers).toBe(0)
  })

  test('of the log, and of a decision', async () => {
    for (const startFrom of ['earliest', 'latest', 12345] as const) {
      const { open, done, commits, holdAnswers, assignAnew, calls, clock } = setUp({ startFrom })
      const opening = open([lane()])
      while (!calls.includes('committed')) await clock.settle()
      const answer = holdAnswers()
      await clock.settle()
      assignAnew()
      answer()
      await clock.advance(5_000)
      await opening
      expect([done, commits]).toEqual([[], []])
    }
  })

  test('a lane that was closed meanwhile is left alone', async () => {
    const { open, done, holdAnswers } = setUp({ committed: { 'orders/0': 7n } })
    const answer = holdAnswers()
    const one = lane()
    const opening = open([one])
    one.close()
    answer()
    await opening
    expect(done).toEqual([])
  })

  test('also where a crash closes it between the look-ups', async () => {
    const { open, done, holdAnswers, clock } = setUp({})
    const offsets = holdAnswers()
    const one = lane()
    const opening = open([one])
    const ranges = holdAnswers()
    offsets()
    await clock.settle()
    one.close()
    ranges()
    await opening
    expect([done, one.state]).toEqual([[], 'closed'])
  })

  test('P9: a stop ends it, and leaves no timer', async () => {
    const { open, done, stop, clock, failing } = setUp({})
    failing['committed'] = [new Error('no')]
    const opening = open([lane()])
    await clock.settle()
    stop()
    await clock.advance(200)
    await opening
    expect(done).toEqual([])
    expect(clock.timers).toBe(0)
  })
})

describe('P12: a look-up that fails', () => {
  test('is told and tried again, later and later, until it works', async () => {
    const { open, done, failing, of, clock } = setUp({ committed: { 'orders/0': 7n } })
    failing['committed'] = Array.from({ length: 7 }, () => new Error('no coordinator'))
    const opening = open([lane()])
    const waits: number[] = []
    for (let i = 0; i < 7; i++) {
      await clock.settle()
      waits.push(clock.nextIn!)
      await clock.advance(clock.nextIn!)
    }
    await opening
    expect(waits).toEqual([200, 400, 800, 1600, 3200, 5000, 5000])
    expect(of('problem')).toHaveLength(7)
    expect(done).toEqual(['open orders/0 at 7, committed 7'])
  })

  test('does not open twice the lanes that were opened before it failed', async () => {
    const { open, done, failing, clock, committed } = setUp({
      committed: { 'orders/0': 7n },
      logs: { orders: [[0n, 100n]], refunds: [[0n, 5n]] },
    })
    failing['ranges'] = [new Error('no')]
    const first = lane()
    const opening = open([first, lane(0, { topic: 'refunds' })])
    await clock.settle()
    // It works meanwhile, and a commit is under way while the broker is asked again.
    committed['orders/0'] = 9n
    first.committed = { offset: 11n, metadata: '' }
    await clock.advance(200)
    await opening
    expect(done).toEqual(['open orders/0 at 7, committed 7', 'open refunds/0 at 0, committed nothing'])
  })

  test('a decision that the broker refuses is made again', async () => {
    const { open, commits, failing, clock } = setUp({ startFrom: 'latest' })
    failing['commit'] = [new Error('rebalance in progress')]
    const opening = open([lane()])
    await clock.advance(500)
    await opening
    expect(commits).toEqual(['orders/0@100'])
  })
})
