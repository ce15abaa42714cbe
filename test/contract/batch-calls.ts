import { describe, expect, it } from 'vitest'
import { NonRetryableError, RetryableError } from '../../src'
import { numbered } from './batch-failures'
import { Batching, mostTogether, named, type BatchSeen } from './batching'
import type { Given } from './promises'
import { seeded } from './seeded'

const inOrder = (offsets: readonly string[]): void => {
  const all = offsets.map(BigInt)
  expect(all).toEqual([...all].sort((a, b) => (a < b ? -1 : 1)))
}

/** P7, P9: batches over rebalances and stops, with what they send. */
export function batchCalls(given: Given): void {
  describe('batch: bounds, rebalance, stop, pause, send', () => {
    it('maxBytes bounds a batch, and one record may be larger; linger waits for more', async () => {
      const scene = await given.scene()
      const batching = new Batching(scene)
      const [large, small] = ['x'.repeat(3_000), 'y'.repeat(10)]
      await scene.produce([large, small, small, large])
      await batching.join(undefined, { batch: { maxBytes: 2_000, maxRecords: 3, linger: '300ms' } })
      await scene.produce([small])
      await scene.untilDone()
      const shape = batching.seen.map(({ values }) => values.map(({ length }) => length))
      expect(shape).toEqual([[3_000], [10, 10], [3_000], [10]])
      const at = given.stage().now()
      await scene.produce(['a'])
      await scene.produce(['b'])
      await scene.produce(['c'])
      await scene.untilDone()
      expect(batching.values().slice(-3)).toEqual(['a', 'b', 'c'])
      if (given.stage().kind === 'fake') expect(batching.sizes().at(-1)).toBe(3)
      await scene.produce(['alone'])
      await scene.untilDone()
      expect(batching.seen.at(-1)!.startedAt - at).toBeGreaterThanOrEqual(300)
    })

    it('a call that takes too long: at the last attempt only what hangs by itself is dead', async () => {
      const scene = await given.scene({ schedule: [] })
      const batching = new Batching(scene)
      const gate = scene.gate()
      await scene.produce(numbered(2))
      const member = await batching.join((call) => named(call, 'r001') && gate.wait(), { handlerTimeout: '100ms' })
      await scene.untilDead(1)
      await scene.untilDone()
      expect((await scene.dead()).map(({ value }) => String(value))).toEqual(['r001'])
      expect(batching.values()).toContain('r000')
      expect(batching.seen[0]!.ctx.signal.aborted).toBe(true)
      expect(member.hooks.events('abandoned').map(({ offset }) => offset)).toContain('1')
    })

    it('P7: a member joins while a batch is under way: nothing is lost, and its late result moves nothing', async () => {
      const scene = await given.scene({ partitions: 2 })
      const batching = new Batching(scene)
      const gate = scene.gate()
      for (const partition of [0, 1]) await scene.produce(numbered(30), partition)
      const act = ({ member }: BatchSeen): unknown => member === 0 && gate.wait()
      const first = await batching.join(act, { batch: { maxRecords: 10 } })
      await batching.untilCalls(2)
      const watch = given.stage().watch(scene.group, scene.topic)
      const second = await batching.join(act, { batch: { maxRecords: 10 } })
      await scene.untilShared([first, second], 2)
      const [moved] = scene.partitionsOf(second)
      await given.stage().until(async () => (await scene.committed()).get(moved!) === 30n, 'the new owner is through')
      gate.open()
      await scene.untilDone()
      for (const partition of [0, 1]) {
        const mine = batching.seen.filter((call) => call.partition === partition)
        expect([...new Set(mine.flatMap(({ values }) => values))].sort()).toEqual(numbered(30))
      }
      expect(first.hooks.counts.late).toBe(10)
      expect(first.faults.commits.filter((one) => one.partition === moved && one.offset > 0n)).toEqual([])
      for (const offsets of (await watch.stop()).values()) inOrder(offsets.filter((at) => at >= 0n).map(String))
    })

    it('P7: records that come again while their batch runs here join that call, each by itself', async () => {
      const scene = await given.scene()
      const batching = new Batching(scene)
      const gate = scene.gate()
      await scene.produce(numbered(4))
      const act = async (call: BatchSeen): Promise<void> => {
        if (call !== batching.seen[0]) return
        await gate.wait()
        call.ctx.fail(named(call, 'r002')!, new NonRetryableError('a bad order'))
      }
      const member = await batching.join(act)
      await batching.untilCalls(1)
      member.faults.crashAtBatch(scene.topic)
      await scene.produce(['behind'])
      await given.stage().until(() => member.hooks.counts.restarted === 1, 'the client is back')
      await given.stage().until(() => member.hooks.counts.skipped >= 1, 'it has come again, and joined')
      gate.open()
      await scene.untilDone()
      expect((await scene.dead()).map(({ value }) => String(value))).toEqual(['r002'])
      // What joined was not handled again.
      const joined = member.hooks.events('skipped').map(({ offset }) => `r00${offset}`)
      expect(batching.seen.slice(1).flatMap(({ values }) => values)).not.toEqual(expect.arrayContaining(joined))
      expect(batching.values()).toContain('behind')
    })

    it('P9: a stop that is not waited for leaves all of the batch to the next owner', async () => {
      const scene = await given.scene()
      const batching = new Batching(scene)
      const gate = scene.gate()
      await scene.produce(numbered(20))
      const act = ({ member, ctx }: BatchSeen): unknown => {
        if (member > 0) return undefined
        ctx.fail(0, new NonRetryableError('said before the stop'))
        return gate.wait()
      }
      const first = await batching.join(act, { shutdownTimeout: '50ms' })
      await batching.untilCalls(1)
      const size = batching.seen[0]!.values.length
      const report = await given.stage().during(first.consumer.stop())
      expect(report.abandoned).toHaveLength(size)
      expect(batching.seen[0]!.ctx.signal.aborted).toBe(true)
      expect((await scene.committed()).get(0) ?? 0n).toBeLessThanOrEqual(0n)
      await batching.join(act)
      await scene.untilDone()
      expect(batching.seen.filter(({ member }) => member === 1).flatMap(({ values }) => values)).toEqual(numbered(20))
      expect(await scene.dead()).toEqual([])
    })

    it('P9: a stop waits for the batch that runs, and starts no other', async () => {
      const scene = await given.scene()
      const batching = new Batching(scene)
      await scene.produce(numbered(20))
      const first = await batching.join(() => given.stage().takes(50), { batch: { maxRecords: 5 } })
      await batching.untilCalls(1)
      const report = await given.stage().during(first.consumer.stop())
      expect(report).toEqual({ abandoned: [], finished: true })
      const done = batching.values().length
      expect(done % 5).toBe(0)
      expect(done).toBeLessThan(20)
      expect((await scene.committed()).get(0)).toBe(BigInt(done))
    })

    it('pause and throw: the same records again after the resume, nothing counted', async () => {
      const scene = await given.scene()
      const batching = new Batching(scene)
      await scene.produce(numbered(5))
      let resume: (() => void) | undefined
      const act = ({ batch }: BatchSeen): void => {
        if (resume !== undefined) return
        resume = batch.pause()
        throw new NonRetryableError('not now')
      }
      const member = await batching.join(act)
      await given.stage().until(() => member.hooks.counts.paused === 1 && batching.seen[0]!.ended, 'it is paused')
      const [first] = batching.seen
      resume?.()
      await scene.untilDone()
      expect(batching.values()).toEqual([...first!.values, ...numbered(5)])
      expect(await scene.dead()).toEqual([])
      expect(batching.seen.at(-1)!.messages.every(({ attempt }) => attempt === 1)).toBe(true)
    })

    it('ctx.send: for the batch, once; for a record, dropped where it fails', async () => {
      const scene = await given.scene()
      const audit = given.stage().unique('audit')
      await given.stage().createTopics({ [audit]: 1 })
      const batching = new Batching(scene)
      await scene.produce(numbered(6))
      const act = ({ ctx, messages, topic, values }: BatchSeen): void => {
        const at = topic === scene.topic ? 'main' : 'retry'
        ctx.send({ topic: audit, value: `${at}: ${values.length}` })
        for (const message of messages) {
          ctx.send([{ topic: audit, value: `${at}: ${String(message.value)}` }], message)
          if (at === 'main' && String(message.value) === 'r001') ctx.fail(message, new RetryableError('busy'))
        }
      }
      await batching.join(act, { batch: { maxRecords: 6, linger: '500ms' } })
      await scene.untilDone()
      const sent = (await given.stage().records(audit)).map(({ value }) => String(value)).sort()
      const good = numbered(6).filter((value) => value !== 'r001')
      expect(sent).toEqual(['main: 6', ...good.map((value) => `main: ${value}`), 'retry: 1', 'retry: r001'].sort())
    })

    it('what a batch sends and cannot be sent: smaller batches are tried, and only what fails alone is dead', async () => {
      const scene = await given.scene({ schedule: [] })
      const audit = given.stage().unique('audit')
      await given.stage().createTopics({ [audit]: 1 })
      const batching = new Batching(scene)
      await scene.produce(numbered(6))
      const act = ({ ctx, values }: BatchSeen): void => {
        // No such partition.
        ctx.send({ topic: audit, value: values.join(), partition: values.includes('r004') ? 7 : 0 })
      }
      await batching.join(act, { unknownErrors: 'dead-letter' })
      await scene.untilDone()
      expect((await scene.dead()).map(({ value }) => String(value))).toEqual(['r004'])
      const sent = (await given.stage().records(audit)).flatMap(({ value }) => String(value).split(','))
      expect(sent.sort()).toEqual(numbered(6).filter((value) => value !== 'r004'))
    })
  })
}

/** P6: batches under the ordering modes. */
export function batchOrder(given: Given, modes: readonly ('partition' | 'key' | 'unordered')[]): void {
  const tell = (mode: (typeof modes)[number], title: string, test: () => Promise<void>): void => {
    if (modes.includes(mode)) it(title, test)
  }

  describe('batch: order', () => {
    async function load(seed: number, ordering: string, concurrency: number) {
      const random = seeded(seed)
      const scene = await given.scene({ partitions: 2 })
      const batching = new Batching(scene)
      const act = async ({ ctx, messages, topic }: BatchSeen): Promise<void> => {
        await given.stage().takes(Math.floor(random() * 10))
        for (const message of messages) {
          if (topic === scene.topic && random() < 0.1) ctx.fail(message, new RetryableError('busy'))
        }
      }
      await batching.join(act, { ordering, concurrency, batch: { maxRecords: 7 } })
      for (let n = 0; n < 80; n++) {
        await scene.produce([{ key: `k${Math.floor(random() * 5)}`, value: `r${n}` }], n % 2)
      }
      await scene.untilDone()
      for (const { values } of batching.seen) expect(values.length).toBeLessThanOrEqual(7)
      expect(batching.values(scene.topic)).toHaveLength(80)
      scene.expectNoStepBack()
      return { scene, batching, main: batching.seen.filter(({ topic }) => topic === scene.topic) }
    }
    const lane = ({ topic, partition }: BatchSeen): string => `${topic}/${partition}`

    tell('partition', 'partition: one batch at a time, in order', async () => {
      const { batching, main } = await load(31, 'partition', 16)
      for (const partition of [0, 1]) {
        const mine = main.filter((call) => call.partition === partition)
        inOrder(mine.flatMap(({ messages }) => messages.map(({ offset }) => offset)))
      }
      expect(mostTogether(batching.log, (call) => [lane(call)])).toBe(1)
    })

    tell('key', 'key: each in order, and none in two batches at once', async () => {
      const { batching, main } = await load(32, 'key', 16)
      for (const key of new Set(main.flatMap(({ messages }) => messages.map((message) => String(message.key))))) {
        for (const partition of [0, 1]) {
          const mine = main.filter((call) => call.partition === partition).flatMap(({ messages }) => messages)
          inOrder(mine.filter((message) => String(message.key) === key).map(({ offset }) => offset))
        }
      }
      for (const { messages } of main) inOrder(messages.map(({ offset }) => offset))
      const keysOf = (call: BatchSeen): string[] => call.messages.map(({ key }) => `${lane(call)} ${String(key)}`)
      expect(mostTogether(batching.log, keysOf)).toBe(1)
    })

    tell('unordered', 'unordered: side by side, never more than concurrency', async () => {
      const { batching } = await load(33, 'unordered', 3)
      expect(mostTogether(batching.log, ({ topic }) => [topic])).toBeLessThanOrEqual(3)
    })
  })
}
