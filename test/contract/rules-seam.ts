import type { Kafka } from 'kafkajs'
import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src'
import type { Given } from './promises'
import type { Call } from './scene'

const numbered = (count: number): string[] => Array.from({ length: count }, (_, n) => `r${n}`)
const at = (offsets: any): string[] =>
  offsets.topics.flatMap(({ topic: _, partitions }: any) =>
    partitions.map(({ partition, offset }: any) => `${partition}@${offset}`),
  )

/** The rules of the engine that show at the seam to its client: what it calls, when, and what it makes of the answers. */
export function seamRules(given: Given): void {
  describe('the rules of the engine', () => {
    it('rule 1: no auto-commit, no auto-resolve, always from the beginning, on the main topic and on the tiers', async () => {
      const scene = await given.scene()
      const { faults } = await scene.join(undefined, { startFrom: 'latest' })
      expect(faults.calls('consumer').map(({ group }) => group)).toEqual([scene.group, scene.retryGroup('200ms')])
      for (const { args } of faults.calls('consumer.run')) {
        expect(args[0]).toMatchObject({ autoCommit: false, eachBatchAutoResolve: false })
      }
      // The groups join side by side, so either may be the first.
      const subscribed = faults.calls('consumer.subscribe').map(({ args }) => args[0])
      expect(subscribed).toHaveLength(2)
      expect(subscribed).toEqual(
        expect.arrayContaining([
          { topics: [scene.topic], fromBeginning: true },
          { topics: [scene.retry('200ms')], fromBeginning: true },
        ]),
      )
    })

    it("rule 2: once there is a payload, commits go through the newest one's, until a crash", async () => {
      const scene = await given.scene()
      const { faults, hooks } = await scene.join()
      await scene.produce(numbered(5))
      await scene.untilDone()
      const names = (): string[] =>
        faults.trace
          .filter(({ group }) => group === scene.group)
          .map(({ name }) => name)
          .filter((name) => /commit|eachBatch/.test(name))
      expect(names().indexOf('eachBatch')).toBeGreaterThanOrEqual(0)
      expect(names().slice(names().indexOf('eachBatch'))).not.toContain('consumer.commitOffsets')
      expect(names()).toContain('payload.commit')

      const before = names().length
      faults.crashAtBatch(scene.topic)
      await scene.produce(['r5'])
      await given.stage().until(() => hooks.counts.restarted === 1, 'the client is back')
      await scene.untilDone()
      const after = names().slice(before)
      expect(after.slice(0, after.indexOf('eachBatch'))).not.toContain('payload.commit')
      scene.expectNoStepBack()
    })

    it('rule 3: one commit in flight; after an error the offsets are chosen anew', async () => {
      const scene = await given.scene()
      const { faults } = await scene.join()
      await given.stage().until(async () => (await scene.committed()).get(0) === 0n, 'the beginning is committed')
      await scene.produce(['r0'])
      await scene.untilDone()
      const answer = scene.gate()
      const held = faults.commit(
        answer.wait().then(() => Promise.reject(new Error('injected: refused at last'))),
        { topic: scene.topic, times: 1 },
      )
      await scene.produce(['r1'])
      await given.stage().until(() => held.hits === 1, 'a commit is in flight')
      const sent = (): string[] => faults.calls('payload.commit', scene.group).flatMap(({ args }) => at(args[0]))
      const before = sent().length
      await scene.produce(['r2', 'r3'])
      await scene.untilCalls(4)
      await scene.produce(['r4'])
      await scene.untilCalls(5)
      expect(sent().length).toBe(before)
      answer.open()
      await scene.untilDone()
      expect(sent().slice(before)).toEqual(['0@5'])
    })

    it('rule 4: a commit that resolves without an event is none', async () => {
      const scene = await given.scene()
      const { faults, hooks } = await scene.join()
      const silent = faults.commit('silent', { topic: scene.topic, times: 2 })
      await scene.produce(numbered(3))
      await scene.untilDone()
      await given.stage().until(() => silent.hits === 2, 'both were met')
      expect(hooks.counts.commitFailed).toBe(2)
    })

    it('rule 5: after a rebalance every kept partition is sought to its own position, and a listener that throws harms nothing', async () => {
      const scene = await given.scene({ partitions: 4 })
      const gate = scene.gate()
      const act = ({ member, offset }: Call): unknown => (member === 0 && offset === '0' ? gate.wait() : undefined)
      const throwing = {
        rebalanced() {
          throw new TypeError('a bug of the hook')
        },
      }
      const first = await scene.join(act, { hooks: [throwing] })
      for (let partition = 0; partition < 4; partition++) await scene.produce(numbered(3), partition)
      await scene.untilCalls(4)
      const before = first.faults.trace.length
      const second = await scene.join(act)
      await scene.untilShared([first, second], 4)
      const since = first.faults.trace.slice(before).filter(({ group }) => group === scene.group)
      const nextBatch = since.findIndex(({ name }) => name === 'eachBatch')
      const sought = since
        .slice(0, nextBatch < 0 ? undefined : nextBatch)
        .filter(({ name }) => name === 'consumer.seek')
        .map(({ args }) => `${args[0].partition}@${args[0].offset}`)
      // The position, with all three records in memory; committed is 0.
      expect([...new Set(sought)].sort()).toEqual(scene.partitionsOf(first).map((partition) => `${partition}@3`))
      gate.open()
      await scene.untilDone()
    })

    it('rule 6: after a rebalance nothing starts and nothing is committed before the broker has told where the group stands', async () => {
      const scene = await given.scene({ partitions: 4 })
      const gate = scene.gate()
      const act = ({ member, offset }: Call): unknown => (member === 0 && offset === '0' ? gate.wait() : undefined)
      const first = await scene.join(act)
      for (let partition = 0; partition < 4; partition++) await scene.produce(numbered(3), partition)
      await scene.untilCalls(4)
      const answer = scene.gate()
      first.faults.bend('admin.fetchOffsets', async (result) => {
        await answer.wait()
        return result()
      })
      const second = await scene.join(act)
      await given
        .stage()
        .until(() => scene.partitionsOf(second).length === 2 && scene.partitionsOf(first).length === 2, 'two each')
      const [kept, moved] = [scene.partitionsOf(first), scene.partitionsOf(second)]
      const commits = (): number => first.faults.calls('payload.commit', scene.group).length
      const before = commits()
      gate.open()
      await scene.untilCalls(6, ({ member }) => member === 1)
      // In this time the first member would have committed, and started, too.
      await scene.witness(moved[0]!)
      expect(scene.calls.filter(({ member, partition }) => member === 0 && kept.includes(partition))).toHaveLength(2)
      expect(commits()).toBe(before)
      answer.open()
      first.faults.bend('admin.fetchOffsets', undefined)
      await scene.untilDone()
      expect(scene.calls.filter(({ member, partition }) => member === 0 && kept.includes(partition))).toHaveLength(6)
    })

    it('rule 6: a kept partition that was somebody else’s meanwhile is begun anew at the broker’s offset', async () => {
      const scene = await given.scene({ partitions: 2 })
      const first = await scene.join()
      await scene.produce(numbered(3))
      await scene.untilDone()
      // As if another member had owned the partition in a generation that this one never saw: a transaction names no generation.
      const other = (given.stage().client() as unknown as Kafka).producer({ transactionalId: `${scene.group}-other` })
      await other.connect()
      let moved = false
      first.faults.bend('admin.fetchOffsets', async (result) => {
        // When it asks, all that it commits by itself before it knows more is committed.
        const [{ topic }] = (await result()) as [{ topic: string }]
        if (topic === scene.topic && !moved) {
          moved = true
          const transaction = await other.transaction()
          const partitions = [{ partition: 0, offset: '1' }]
          await transaction.sendOffsets({ consumerGroupId: scene.group, topics: [{ topic, partitions }] })
          await transaction.commit()
          // It asks in two ways side by side; the other answer may be of before.
          throw new Error('asked too early')
        }
        return result()
      })
      const second = await scene.join()
      await scene.untilShared([first, second], 2)
      // Sticky: of what it held it keeps the first.
      expect(scene.partitionsOf(first)).toEqual([0])
      await given.stage().until(() => first.hooks.counts.reopened === 1, 'it is begun anew')
      expect(first.hooks.events('reopened')).toMatchObject([{ partition: 0, ours: '3', broker: '1' }])
      await scene.untilCalls(5)
      expect(scene.values().slice(3)).toEqual(['r1', 'r2'])
      await other.disconnect()
    })

    it('rule 7: where there is no offset, the position is fixed, sought and committed before any record comes', async () => {
      const scene = await given.scene({ partitions: 2 })
      const { faults } = await scene.join()
      await given
        .stage()
        .until(
          async () => [...(await scene.committed()).values()].every((offset) => offset === 0n),
          'both are committed',
        )
      const sought = faults
        .calls('consumer.seek', scene.group)
        .map(({ args }) => `${args[0].partition}@${args[0].offset}`)
      expect(sought.sort()).toEqual(['0@0', '1@0'])
      expect(scene.calls).toHaveLength(0)
    })

    it('rule 8: the admin client is warmed with our own topics before the first look-up of offsets, and never with all', async () => {
      const scene = await given.scene()
      const { faults } = await scene.join()
      const looks = faults.trace.filter(({ name }) => ['admin.fetchTopicMetadata', 'admin.fetchOffsets'].includes(name))
      expect(looks[0]?.name).toBe('admin.fetchTopicMetadata')
      for (const { args } of faults.calls('admin.fetchTopicMetadata'))
        expect(args[0]?.topics?.length).toBeGreaterThan(0)
    })

    it('rule 9: a batch that does not continue its lane is not taken', async () => {
      const scene = await given.scene()
      const { faults, hooks } = await scene.join()
      faults.replayBatches(scene.topic)
      for (let n = 0; n < 5; n++) {
        await scene.produce([`r${n}`])
        await scene.untilCalls(n + 1)
      }
      await scene.untilDone()
      expect(scene.values()).toEqual(numbered(5))
      expect(faults.calls('eachBatch', scene.group).length).toBeGreaterThanOrEqual(10)
      expect(hooks.counts.gone).toBe(0)
    })

    it('rule 10: while stopping batches are refused, paused, and not asked for thousands of times', async () => {
      const scene = await given.scene()
      const gate = scene.gate()
      const { faults, consumer } = await scene.join(() => gate.wait())
      await scene.produce(['r0'])
      await scene.untilCalls(1)
      const stopping = consumer.stop()
      await scene.produce(numbered(50))
      await given.stage().until(() => faults.calls('consumer.pause', scene.group).length > 0, 'it is paused')
      gate.open()
      await given.stage().during(stopping)
      expect(faults.calls('eachBatch', scene.group).length).toBeLessThan(10)
      expect(scene.calls).toHaveLength(1)
      expect((await scene.committed()).get(0)).toBe(1n)
    })

    it('rule 12: a full lane is paused once, and resumed at half', async () => {
      const scene = await given.scene()
      const gates = numbered(15).map(() => scene.gate())
      const { faults } = await scene.join(({ offset }) => gates[Number(offset)]?.wait(), { maxBufferedRecords: 10 })
      await scene.produce(numbered(15))
      const count = (name: string): number => faults.calls(name, scene.group).length
      const resumedBefore = count('consumer.resume')
      await given.stage().until(() => count('consumer.pause') === 1, 'the lane is paused')
      for (let n = 0; n < 4; n++) gates[n]?.open()
      await scene.untilCalls(5)
      expect(count('consumer.resume')).toBe(resumedBefore)
      gates[4]?.open()
      await given.stage().until(() => count('consumer.resume') > resumedBefore, 'the lane is resumed')
      for (const gate of gates) gate.open()
      await scene.untilDone()
      expect(count('consumer.pause')).toBe(1)
    })

    it('rule 12: nothing that a batch meets reaches the client', async () => {
      const scene = await given.scene()
      const { faults, hooks } = await scene.join()
      faults.bend('eachBatch', async (result) => {
        const outcome = await result().then(
          () => 'returned',
          () => 'threw',
        )
        expect(outcome).toBe('returned')
      })
      await scene.produce([{ key: Buffer.alloc(0), headers: [['', null]] }, 'r1'])
      await scene.untilDone()
      expect(hooks.counts.crashed).toBe(0)
    })

    it('rule 17: copies wait for all in-sync replicas, by a producer that is not idempotent and creates no topic', async () => {
      const scene = await given.scene()
      const { faults } = await scene.join(() => {
        throw new RetryableError('the shop is closed')
      })
      await scene.produce(['r0'])
      await scene.untilDone()
      expect(faults.calls('producer').map(({ args }) => args[0])).toMatchObject([
        { idempotent: false, allowAutoTopicCreation: false },
      ])
      expect(faults.calls('producer.sendBatch').map(({ args }) => args[0].acks)).toEqual([-1, -1])
    })

    it('rule 20: a start is over when every group is joined, and no fetch waits longer than 200 ms', async () => {
      const scene = await given.scene()
      const { faults, consumer } = await scene.join()
      expect(consumer.health().groups.map(({ state }) => state)).toEqual(['ok', 'ok'])
      expect(await given.stage().members(scene.group)).toHaveLength(1)
      for (const { args } of faults.calls('consumer')) expect(args[0].maxWaitTimeInMs).toBe(200)
    })

    it('rule 20: a stop right after the start leaves no member and starts no handler', async () => {
      const scene = await given.scene()
      await scene.produce(numbered(5))
      const member = scene.member()
      const starting = member.consumer.start().then(
        () => 'started',
        () => 'refused',
      )
      const stopping = member.consumer.stop()
      await given.stage().during(Promise.all([starting, stopping]))
      const calls = scene.calls.length
      await given
        .stage()
        .until(async () => (await given.stage().members(scene.group)).length === 0, 'no member is left')
      await given
        .stage()
        .until(async () => (await given.stage().members(scene.retryGroup('200ms'))).length === 0, 'none of the tier')
      expect(scene.calls).toHaveLength(calls)
    })
  })
}
