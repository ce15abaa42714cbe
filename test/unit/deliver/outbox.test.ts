import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createOutbox, sizeOf, type SendResult } from '../../../src/deliver'
import type { Acknowledgement } from '../../../src/ports'
import type { Outgoing } from '../../../src/record'
import { createTestClock } from '../../helpers/test-clock'
import { hold, isSettled, recorder, type Held } from '../consume/given'

const TIMEOUT = 180_000
const TOO_LARGE = Object.assign(new Error('too large'), { tooLarge: true })

function copy(partition = 0, fields: Partial<Outgoing> = {}): Outgoing {
  return { topic: 'orders.retry.1m', partition, key: null, value: Buffer.from('v'), headers: [], ...fields }
}

type Answer = readonly Acknowledgement[] | Promise<readonly Acknowledgement[]>

const acknowledge = (records: readonly Outgoing[]): Acknowledgement[] => {
  const places = new Map(records.map(({ topic, partition }) => [`${topic}/${partition}`, { topic, partition }]))
  return [...places.values()].map((place) => ({ ...place, errorCode: 0 }))
}

type Publish = (records: readonly Outgoing[], nth: number, compress: boolean) => Answer

function setUp(publish: Publish = acknowledge) {
  const clock = createTestClock()
  const { emitter, of } = recorder(clock)
  const requests: (readonly Outgoing[])[] = []
  let resets = 0
  let counts: (topic: string) => Promise<number | undefined> = () => Promise.resolve(6)
  let resetFails = false
  const outbox = createOutbox({
    publisher: {
      connect: async () => undefined,
      disconnect: async () => undefined,
      async reset() {
        resets++
        if (resetFails) throw new Error('it does not end')
      },
      async publish(records, compress = false) {
        requests.push(records)
        return publish(records, requests.length, compress)
      },
    },
    clock,
    random: () => 0.5,
    emitter,
    timeoutMs: TIMEOUT,
    isTooLarge: (error) => (error as { tooLarge?: boolean }).tooLarge === true,
    countPartitions: (topic) => counts(topic),
  })
  return {
    clock,
    outbox,
    requests,
    of,
    resets: () => resets,
    failResets: () => void (resetFails = true),
    count: (fn: typeof counts) => void (counts = fn),
    places: () => requests.map((records) => records.map(({ topic, partition }) => `${topic}/${partition}`)),
  }
}

describe('P1, R02: a copy counts as stored only when its topic-partition is acknowledged', () => {
  const faults: [string, (records: readonly Outgoing[]) => Answer][] = [
    ['(a) the publish rejects', () => Promise.reject(new Error('no leader'))],
    ['(b) it resolves with nothing', () => []],
    ['(b) it resolves with something that is no answer', () => undefined as never],
    ['(b) it resolves for another partition only', () => [{ topic: 'orders.retry.1m', partition: 5, errorCode: 0 }]],
    ['(b) it resolves for another topic only', () => [{ topic: 'orders.dlq', partition: 0, errorCode: 0 }]],
    ['(c) with an error code', (records) => acknowledge(records).map((entry) => ({ ...entry, errorCode: 6 }))],
    [
      '(c) with success and an error code',
      (records) => acknowledge(records).flatMap((entry) => [entry, { ...entry, errorCode: 6 }]),
    ],
    ['(d) it never settles', () => hold<readonly Acknowledgement[]>().promise],
  ]
  for (const [name, fault] of faults) {
    test(`${name}: the copy waits and is sent again, to the same partition, until it is through`, async () => {
      let broken = true
      const { clock, outbox, requests, of } = setUp((records) => (broken ? fault(records) : acknowledge(records)))
      const trouble: boolean[] = []
      const record = copy()
      const sent = outbox.send(record, (troubled) => trouble.push(troubled))
      await clock.advance(10 * TIMEOUT)
      expect(await isSettled(sent)).toBe(false)
      expect(requests.length).toBeGreaterThan(3)
      expect(trouble).toEqual([true])
      expect(of('publishFailed').length).toBeGreaterThan(3)
      broken = false
      await clock.advance(TIMEOUT + 20_000)
      expect(await sent).toBe('acknowledged')
      expect(requests.every((records) => records.length === 1 && records[0] === record)).toBe(true)
      expect(trouble).toEqual([true, false])
      expect([outbox.pending, clock.timers]).toEqual([0, 0])
    })
  }

  test('what is in the answer is through and not sent again; only what is missing is', async () => {
    const { clock, outbox, places } = setUp((records, nth) =>
      acknowledge(records).filter(({ partition }) => nth > 1 || partition !== 1),
    )
    const sent = [0, 1, 2].map((partition) => outbox.send(copy(partition)))
    await clock.settle()
    expect(await Promise.all([sent[0], sent[2]])).toEqual(['acknowledged', 'acknowledged'])
    expect(await isSettled(sent[1]!)).toBe(false)
    await clock.advance(100)
    expect(await sent[1]).toBe('acknowledged')
    expect(places()[1]).toEqual(['orders.retry.1m/1'])
  })

  test('an acknowledgement after the time-out changes nothing: the copy is sent again', async () => {
    const held: Held<readonly Acknowledgement[]>[] = []
    const { clock, outbox, requests, resets } = setUp(() => {
      const one = hold<readonly Acknowledgement[]>()
      held.push(one)
      return one.promise
    })
    const sent = outbox.send(copy())
    await clock.advance(TIMEOUT)
    expect(resets()).toBe(1)
    held[0]!.resolve(acknowledge([copy()]))
    await clock.settle()
    expect(await isSettled(sent)).toBe(false)
    await clock.advance(100)
    expect(requests).toHaveLength(2)
    held[1]!.resolve(acknowledge([copy()]))
    await clock.settle()
    expect(await sent).toBe('acknowledged')
    expect(clock.timers).toBe(0)
  })

  test('R08: 50 sends at once to one partition are acknowledged one by one, in one request', async () => {
    const { clock, outbox, requests } = setUp()
    const sent = Array.from({ length: 50 }, (_, i) => outbox.send(copy(0, { value: Buffer.from(`${i}`) })))
    expect(outbox.pending).toBe(50)
    await clock.settle()
    expect(await Promise.all(sent)).toEqual(Array.from({ length: 50 }, () => 'acknowledged'))
    expect(requests.map((records) => records.map(({ value }) => value!.toString()))).toEqual([
      Array.from({ length: 50 }, (_, i) => `${i}`),
    ])
    expect(outbox.pending).toBe(0)
  })
})

describe('requests', () => {
  test('what comes while one is under way goes out together in the next', async () => {
    const first = hold<readonly Acknowledgement[]>()
    const { clock, outbox, requests } = setUp((records, nth) => (nth === 1 ? first.promise : acknowledge(records)))
    void outbox.send(copy(0))
    await clock.settle()
    for (let i = 0; i < 5; i++) void outbox.send(copy(i % 3))
    await clock.settle()
    expect(requests).toHaveLength(1)
    first.resolve(acknowledge([copy(0)]))
    await clock.settle()
    expect(requests.map(({ length }) => length)).toEqual([1, 5])
  })

  test('P5: a topic that is ill holds back nobody else', async () => {
    const { clock, outbox } = setUp((records) =>
      records[0]!.topic === 'ill' ? hold<readonly Acknowledgement[]>().promise : acknowledge(records),
    )
    const ill = outbox.send(copy(0, { topic: 'ill' }))
    const well = outbox.send(copy(0, { topic: 'well' }))
    await clock.settle()
    expect(await well).toBe('acknowledged')
    expect(await isSettled(ill)).toBe(false)
  })

  test('P5: and a partition that is ill none of the same topic, after its first failure', async () => {
    const { clock, outbox } = setUp((records) =>
      records.some(({ partition }) => partition === 1) ? Promise.reject(new Error('no leader')) : acknowledge(records),
    )
    const sent = [0, 1, 2].map((partition) => outbox.send(copy(partition)))
    await clock.advance(1_000)
    expect(await Promise.all([sent[0], sent[2]])).toEqual(['acknowledged', 'acknowledged'])
    const later = outbox.send(copy(0))
    await clock.settle()
    expect(await later).toBe('acknowledged')
    expect(await isSettled(sent[1]!)).toBe(false)
  })

  test('property: none is over its limits unless it is a single copy, nothing is lost, each partition keeps its order', async () => {
    const sizes = fc.array(fc.tuple(fc.nat(3), fc.constantFrom(10, 1_000, 200_000, 600_000, 3_000_000)), {
      maxLength: 40,
    })
    await fc.assert(
      fc.asyncProperty(sizes, async (list) => {
        const { clock, outbox, requests } = setUp()
        const copies = list.map(([partition, size]) => copy(partition, { value: Buffer.alloc(size) }))
        const sent = Promise.all(copies.map((record) => outbox.send(record)))
        await clock.settle()
        expect(new Set(await sent).size).toBeLessThanOrEqual(1)
        for (const records of requests) {
          if (records.length === 1) continue
          expect(records.reduce((sum, record) => sum + sizeOf(record), 0)).toBeLessThanOrEqual(8 * 1024 * 1024)
          for (const partition of [0, 1, 2, 3]) {
            const there = records.filter((record) => record.partition === partition)
            const bytes = there.reduce((sum, record) => sum + sizeOf(record), 0)
            // The first of a request is taken whatever its size.
            if (there.length > 1 || there[0] !== records[0]) expect(bytes).toBeLessThanOrEqual(512 * 1024)
          }
        }
        expect(requests.flat()).toEqual(copies)
      }),
      { numRuns: 30 },
    )
  })

  test('none holds more than 1,000 records', async () => {
    const { clock, outbox, requests } = setUp()
    for (let i = 0; i < 2_500; i++) void outbox.send(copy(i % 6, { value: null }))
    await clock.settle()
    expect(requests.map(({ length }) => length)).toEqual([1_000, 1_000, 500])
  })
})

describe('a failed copy', () => {
  test('waits longer each time, up to 10 s', async () => {
    const { clock, outbox } = setUp(() => Promise.reject(new Error('no')))
    void outbox.send(copy())
    const waits: number[] = []
    for (let i = 0; i < 9; i++) {
      await clock.settle()
      waits.push(clock.nextIn!)
      await clock.advance(clock.nextIn!)
    }
    expect(waits).toEqual([75, 150, 300, 600, 1200, 2400, 4800, 7500, 7500])
  })

  test('rule 16: keeps its partition as long as there is one, and moves when the topic has shrunk', async () => {
    let broken = true
    const { clock, outbox, count, places } = setUp((records) =>
      broken ? Promise.reject(new Error('no such partition')) : acknowledge(records),
    )
    const sent = [outbox.send(copy(1)), outbox.send(copy(5))]
    await clock.settle()
    count(() => Promise.resolve(6))
    await clock.advance(100)
    count(() => Promise.resolve(undefined))
    await clock.advance(200)
    count(() => Promise.reject(new Error('nobody answers')))
    await clock.advance(400)
    expect(places().flat()).not.toContain('orders.retry.1m/2')
    count(() => Promise.resolve(3))
    broken = false
    await clock.advance(1_000)
    expect(await Promise.all(sent)).toEqual(['acknowledged', 'acknowledged'])
    expect(places().slice(-2)).toEqual([['orders.retry.1m/1'], ['orders.retry.1m/2']])
  })

  test('rule 17: from the third failure in a row on, each starts on a new connection; a success begins anew', async () => {
    let broken = true
    const { clock, outbox, resets, requests } = setUp((records) =>
      broken ? Promise.reject(new Error('no')) : acknowledge(records),
    )
    void outbox.send(copy())
    await clock.settle()
    const seen: number[] = []
    for (let i = 0; i < 4; i++) {
      seen.push(resets())
      await clock.advance(clock.nextIn!)
    }
    expect([seen, requests.length]).toEqual([[0, 0, 1, 2], 5])
    broken = false
    await clock.advance(10_000)
    broken = true
    const before = resets()
    void outbox.send(copy())
    await clock.advance(100)
    expect(resets()).toBe(before)
  })

  test('P12: a connection that does not end is told, and the copies go on', async () => {
    let broken = true
    const { clock, outbox, failResets, of } = setUp((records) =>
      broken ? Promise.reject(new Error('no')) : acknowledge(records),
    )
    failResets()
    const sent = outbox.send(copy())
    await clock.advance(2_000)
    expect(of('problem').length).toBeGreaterThan(0)
    broken = false
    await clock.advance(10_000)
    expect(await sent).toBe('acknowledged')
  })
})

describe('too large', () => {
  const limited = (limit: number) => (records: readonly Outgoing[]) =>
    records.reduce((sum, { value }) => sum + (value?.length ?? 0), 0) > limit
      ? Promise.reject(TOO_LARGE)
      : acknowledge(records)

  test('property: only what is too large by itself is refused; all others are acknowledged, each stored once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 120 }), { minLength: 1, maxLength: 20 }), async (sizes) => {
        const stored: Outgoing[] = []
        const { clock, outbox, of } = setUp(async (records) => {
          const answer = await limited(100)(records)
          stored.push(...records)
          return answer
        })
        const copies = sizes.map((size, i) => copy(i % 3, { value: Buffer.alloc(size) }))
        const results = Promise.all(copies.map((record) => outbox.send(record)))
        await clock.settle()
        expect(await results).toEqual(sizes.map((size) => (size > 100 ? 'too-large' : 'acknowledged')))
        expect(stored).toHaveLength(copies.filter(({ value }) => value!.length <= 100).length)
        expect(of('publishFailed')).toEqual([])
        expect([outbox.pending, clock.timers]).toEqual([0, 0])
      }),
      { numRuns: 50 },
    )
  })

  test('what is too large by itself is sent compressed before it is given up: its producer may have done so too', async () => {
    const seen: [number, boolean][] = []
    const { clock, outbox, of } = setUp((records, _, compress) => {
      seen.push([records.length, compress])
      return compress ? acknowledge(records) : limited(100)(records)
    })
    const sent = Promise.all([outbox.send(copy(0, { value: Buffer.alloc(120) })), outbox.send(copy(1))])
    await clock.settle()
    expect(await sent).toEqual(['acknowledged', 'acknowledged'])
    expect(seen).toEqual([
      [2, false],
      [1, false],
      [1, true],
      [1, false],
    ])
    expect(of('publishFailed')).toEqual([])
  })

  test('a part that fails for another reason is tried again', async () => {
    let nth = 0
    const { clock, outbox } = setUp((records) => {
      if (records.length > 1) return Promise.reject(TOO_LARGE)
      return ++nth === 1 ? Promise.reject(new Error('cut')) : acknowledge(records)
    })
    const sent = Promise.all([outbox.send(copy(0)), outbox.send(copy(1))])
    await clock.advance(1_000)
    expect(await sent).toEqual(['acknowledged', 'acknowledged'])
  })
})

describe('onTrouble', () => {
  test('property: whatever happens, each copy that was troubled is untroubled in the end, and every send has an end', async () => {
    const what = fc.constantFrom('ok', 'reject', 'empty', 'code', 'too-large', 'hang')
    await fc.assert(
      fc.asyncProperty(
        fc.array(what, { maxLength: 25 }),
        fc.array(fc.nat(3), { minLength: 1, maxLength: 12 }),
        fc.boolean(),
        async (script, partitions, closes) => {
          const { clock, outbox } = setUp((records, nth) => {
            const now = script[nth - 1] ?? (closes ? 'reject' : 'ok')
            if (now === 'reject') return Promise.reject(new Error('no'))
            if (now === 'too-large') return Promise.reject(TOO_LARGE)
            if (now === 'empty') return []
            if (now === 'hang') return hold<readonly Acknowledgement[]>().promise
            return acknowledge(records).map((entry) => ({ ...entry, errorCode: now === 'code' ? 7 : 0 }))
          })
          let troubled = 0
          const changes: boolean[][] = []
          const results: SendResult[] = []
          for (const partition of partitions) {
            const own: boolean[] = []
            changes.push(own)
            void outbox
              .send(copy(partition), (is) => {
                troubled += is ? 1 : -1
                own.push(is)
              })
              .then((result) => results.push(result))
          }
          await clock.advance(closes ? TIMEOUT : 30 * (TIMEOUT + 20_000))
          if (closes) outbox.close()
          await clock.settle()
          expect(results).toHaveLength(partitions.length)
          expect(troubled).toBe(0)
          for (const own of changes) expect([[], [true, false]]).toContainEqual(own)
          expect([outbox.pending, clock.timers]).toEqual([0, 0])
        },
      ),
      { numRuns: 60 },
    )
  })
})

describe('P9: close()', () => {
  test('ends every wait at once: queued, in a request, between two tries; and leaves no timer', async () => {
    const { clock, outbox, resets } = setUp((records) => {
      if (records[0]!.topic === 'hangs') return hold<readonly Acknowledgement[]>().promise
      return Promise.reject(new Error('no'))
    })
    const waiting = outbox.send(copy(0, { topic: 'fails' }))
    const hanging = outbox.send(copy(0, { topic: 'hangs' }))
    await clock.settle()
    const behind = outbox.send(copy(0, { topic: 'hangs' }))
    const queued = outbox.send(copy(0, { topic: 'new' }))
    outbox.close()
    await clock.settle()
    expect(await Promise.all([waiting, hanging, behind, queued])).toEqual(['closed', 'closed', 'closed', 'closed'])
    expect([outbox.pending, clock.timers, resets()]).toEqual([0, 0, 0])
  })

  test('nothing is published afterwards', async () => {
    const { clock, outbox, requests, count } = setUp(() => Promise.reject(new Error('no')))
    const answer = hold<number>()
    count(() => answer.promise)
    const sent = outbox.send(copy())
    await clock.advance(100)
    outbox.close()
    answer.resolve(6)
    expect(await outbox.send(copy())).toBe('closed')
    await clock.advance(60_000)
    expect(await sent).toBe('closed')
    expect(requests).toHaveLength(1)
  })

  test('wait() is true when the time has passed, and false at once after close()', async () => {
    const { clock, outbox } = setUp()
    const passed = outbox.wait(100)
    await clock.advance(100)
    expect(await passed).toBe(true)
    const ended = outbox.wait(100)
    outbox.close()
    expect([await ended, await outbox.wait(100), clock.timers]).toEqual([false, false, 0])
  })
})
