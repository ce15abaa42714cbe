import { describe, expect, it } from 'vitest'
import type { Given } from './promises'
import { header } from './scene'

const FAILS = (): never => {
  throw new Error('the shop is closed')
}

/** P1, the half about copies: an offset waits until its copy is acknowledged, whatever a publish answers. */
export function publishPromises(given: Given): void {
  describe('P1 nothing lost: copies', () => {
    it('rule 16: every topic-partition that was sent must be in the answer', async () => {
      const scene = await given.scene({ partitions: 4 })
      const gate = scene.gate()
      const member = await scene.join(async (call) => {
        if (call.value !== 'bad') return
        if (call.attempt === 1) await gate.wait()
        FAILS()
      })
      for (const partition of [0, 1, 2]) await scene.produce(['bad'], partition)
      await scene.untilCalls(3)
      const fault = member.faults.publish('partial', { times: 1, topic: scene.retry('200ms') })
      gate.open()
      await scene.untilDone()
      expect(fault.hits).toBe(1)
      expect(member.hooks.counts.publishFailed).toBeGreaterThanOrEqual(1)
      const origins = (await scene.dead()).map((one) => header(one, 'x-original-partition'))
      expect([...new Set(origins)].sort()).toEqual(['0', '1', '2'])
    })

    it('rule 16: a copy keeps its partition at every try', async () => {
      const scene = await given.scene({ partitions: 3, retryPartitions: 2 })
      const member = await scene.join(FAILS)
      member.faults.publish('reject', { times: 3 })
      for (const partition of [0, 1, 2]) await scene.produce([{ value: 'bad' }], partition)
      await scene.untilDone()
      const tries = member.faults.publishes.flat().filter((place) => place.startsWith(scene.retry('200ms')))
      // Offset 0 of partition 2 without a key: (2 + 0) modulo 2.
      expect(new Set(tries)).toEqual(new Set([`${scene.retry('200ms')}/0`, `${scene.retry('200ms')}/1`]))
      expect(await given.stage().records(scene.retry('200ms'))).toHaveLength(3)
    })

    it('a producer that cannot even be disconnected does not stop the copies', async () => {
      const scene = await given.scene()
      const member = await scene.join((call) => call.value === 'bad' && FAILS())
      member.faults.stickDisconnects()
      member.faults.publish('reject', { times: 4 })
      await scene.produce(['bad'])
      await scene.untilDone()
      expect(await scene.dead()).toHaveLength(1)
      member.faults.freeDisconnects()
    })

    it('what a handler sends stands before its record is done with', async () => {
      const scene = await given.scene({ partitions: 2 })
      const out = given.stage().unique('invoices')
      await given.stage().createTopics({ [out]: 1 })
      const member = await scene.join(
        ({ value, ctx }) => value === 'order' && ctx.send({ topic: out, value: 'invoice' }),
      )
      const fault = member.faults.publish('empty', { topic: out })
      await scene.produce(['order'])
      await given.stage().until(() => fault.hits >= 1, 'the publish is tried')
      await scene.witness(1)
      expect((await scene.committed()).get(0)).toBe(0n)
      fault.stop()
      await scene.untilDone()
      expect((await given.stage().records(out)).map(({ value }) => String(value))).toEqual(['invoice'])
    })

    it('P1: what a handler sends waits while the cluster cannot be asked for its topic: the record is not failed for it', async () => {
      const scene = await given.scene({ schedule: [] })
      const out = given.stage().unique('invoices')
      await given.stage().createTopics({ [out]: 1 })
      const member = await scene.join(({ ctx }) => ctx.send({ topic: out, value: 'invoice' }))
      let asked = 0
      member.faults.bend('admin.fetchTopicMetadata', async () => {
        asked++
        throw new Error('Connection error: read ECONNRESET')
      })
      await scene.produce(['order'])
      await given.stage().until(() => asked >= 2, 'the topic is looked up again')
      expect((await scene.committed()).get(0)).toBe(0n)
      member.faults.bend('admin.fetchTopicMetadata', undefined)
      await scene.untilDone()
      expect(await scene.dead()).toEqual([])
      expect(scene.calls).toHaveLength(1)
      expect((await given.stage().records(out)).map(({ value }) => String(value))).toEqual(['invoice'])
    })
  })
}
