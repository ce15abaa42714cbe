import { describe, expect, it } from 'vitest'
import type { StepFault, TransactionStep } from './faulty-client'
import type { Given } from './promises'
import { header, type Call, type Member, type Scene } from './scene'

const EXACTLY = { delivery: 'exactly-once' }
const SHOP_CLOSED = 'the shop is closed'

const fails = (): never => {
  throw new Error(SHOP_CLOSED)
}

/** Everything but `ok…`, and a scene's witness, fails at every attempt. */
const failsUnlessOk = ({ value }: Call): void => {
  if (!value?.startsWith('ok') && value !== 'witness') fails()
}

type StepFaultCase = readonly [TransactionStep, Exclude<StepFault, object>]

export const STEP_FAULTS: readonly StepFaultCase[] = [
  ['begin', 'reject'],
  ['publish', 'reject'],
  ['publish', 'answer-lost'],
  ['publish', 'never'],
  ['publish', 'late'],
  ['offsets', 'reject'],
  ['offsets', 'answer-lost'],
  ['offsets', 'late'],
  ['commit', 'reject'],
  ['commit', 'answer-lost'],
  ['commit', 'never'],
  ['commit', 'late'],
]

/** P1 with `delivery: 'exactly-once'`: a read_committed reader sees each hop of each record once, whatever fails on the way. */
export function exactlyOncePromises(given: Given, faults: readonly StepFaultCase[] = STEP_FAULTS): void {
  const stage = () => given.stage()

  /** The first place of each record on a topic, in order. */
  async function hops(topic: string): Promise<string[]> {
    const records = await stage().records(topic)
    return records
      .map((record) => `${header(record, 'x-original-partition')}@${header(record, 'x-original-offset')}`)
      .sort()
  }

  async function expectEachHopOnce(scene: Scene, places: readonly string[]): Promise<void> {
    for (const delay of scene.schedule) expect(await hops(scene.retry(delay)), `hops to ${delay}`).toEqual([...places])
    expect(await hops(scene.dlq), 'hops to the dead letter topic').toEqual([...places])
  }

  function trouble(member: Member): string {
    return JSON.stringify([
      member.hooks.events('publishFailed'),
      member.hooks.events('problem'),
      member.hooks.events('fenced'),
    ])
  }

  describe('exactly once: each hop stands once', () => {
    it('without a fault, by transactions and nothing else', async () => {
      const scene = await given.scene({ partitions: 2 })
      const member = await scene.join(failsUnlessOk, EXACTLY)
      await scene.produce(['bad', 'ok', 'bad'], 0)
      await scene.produce(['bad', 'ok'], 1)
      await scene.untilDone()
      await expectEachHopOnce(scene, ['0@0', '0@2', '1@0'])
      expect(member.faults.calls('producer.sendBatch')).toEqual([])
      expect(member.hooks.counts.publishFailed ?? 0, trouble(member)).toBe(0)
      scene.expectNoStepBack()
    })

    for (const [step, fault] of faults) {
      it(`where ${step} fails (${fault})`, async () => {
        const scene = await given.scene({ partitions: 1 })
        const gate = scene.gate()
        const member = await scene.join(
          async (call) => {
            await gate.wait()
            failsUnlessOk(call)
          },
          { ...EXACTLY, publishTimeout: '1s', ordering: 'unordered' },
        )
        await scene.produce(['bad', 'ok', 'worse', 'ok', 'ok'])
        await scene.untilCalls(5)
        const id = `${scene.group}/${scene.topic}/0`
        const injected = member.faults.transaction(step, fault, { times: 2, id })
        gate.open()
        await scene.untilDone()
        // One that was done after all takes all five with it.
        expect(injected.hits).toBeGreaterThanOrEqual(
          step === 'commit' && fault !== 'reject' && fault !== 'never' ? 1 : 2,
        )
        await expectEachHopOnce(scene, ['0@0', '0@2'])
        scene.expectNoStepBack()
      })
    }

    it('where a topic-partition is not in the answer', async () => {
      const scene = await given.scene({ partitions: 3 })
      const member = await scene.join(failsUnlessOk, EXACTLY)
      const fault = member.faults.publish('empty', { times: 2, topic: scene.retry('200ms') })
      await scene.produce(['bad'], 1)
      await scene.untilDone()
      expect(fault.hits).toBe(2)
      await expectEachHopOnce(scene, ['1@0'])
    })

    it('where somebody else takes the transactional id over in the middle', async () => {
      const scene = await given.scene({ partitions: 1 })
      const member = await scene.join(failsUnlessOk, EXACTLY)
      const gate = scene.gate()
      const id = `${scene.group}/${scene.topic}/0`
      const held = member.faults.transaction('offsets', gate.wait(), { times: 1, id })
      await scene.produce(['bad'])
      await stage().until(() => held.hits === 1, 'the transaction is open')
      const other = stage().client() as unknown as {
        producer(config: object): {
          connect(): Promise<void>
          disconnect(): Promise<void>
          transaction(): Promise<{ abort(): Promise<void> }>
        }
      }
      const thief = other.producer({ transactionalId: id })
      await thief.connect()
      await stage().during(thief.transaction().then((transaction) => transaction.abort()))
      gate.open()
      await scene.untilDone()
      await thief.disconnect()
      expect(member.hooks.counts.fenced).toBe(1)
      await expectEachHopOnce(scene, ['0@0'])
    })
  })

  describe('exactly once: one transaction for all that is staged', () => {
    it('what fails while one is under way goes out together in the next', async () => {
      const scene = await given.scene({ partitions: 1 })
      const gate = scene.gate()
      const member = await scene.join(failsUnlessOk, { ...EXACTLY, ordering: 'unordered' })
      const held = member.faults.transaction('commit', gate.wait(), { times: 1 })
      await scene.produce(['bad'])
      await stage().until(() => held.hits === 1, 'the first transaction is under way')
      await scene.produce(Array.from({ length: 20 }, (_, i) => `bad ${i}`))
      await scene.untilCalls(21)
      const before = member.faults.commits.length
      gate.open()
      await scene.untilDone()
      const main = member.faults.commits.slice(before).filter(({ topic }) => topic === scene.topic)
      // The first, and one or two for the twenty, however the copies were ready.
      expect(main.length, JSON.stringify(main.map(({ offset }) => String(offset)))).toBeLessThanOrEqual(6)
      expect(await hops(scene.dlq)).toHaveLength(21)
    })

    it('no plain commit of a lane is sent while its transaction is under way', async () => {
      const scene = await given.scene({ partitions: 2 })
      const gate = scene.gate()
      const member = await scene.join(failsUnlessOk, { ...EXACTLY, ordering: 'unordered' })
      await scene.witness(0)
      const held = member.faults.transaction('commit', gate.wait(), { times: 1 })
      await scene.produce(['bad'], 0)
      await stage().until(() => held.hits === 1, 'the transaction is under way')
      await scene.produce(['ok'], 0)
      await scene.untilCalls(3)
      const before = (await scene.committed()).get(0)
      await scene.witness(1)
      expect((await scene.committed()).get(0)).toBe(before)
      gate.open()
      await scene.untilDone()
      await expectEachHopOnce(scene, ['0@1'])
    })
  })

  describe('exactly once: what a handler sends', () => {
    it('stands once, with its record done, where the commit is not answered', async () => {
      const scene = await given.scene({ partitions: 1 })
      const out = stage().unique('invoices')
      await stage().createTopics({ [out]: 2 })
      const member = await scene.join(
        ({ value, ctx }) =>
          ctx.send([0, 1].map((partition) => ({ topic: out, value: `${value}-${partition}`, partition }))),
        { ...EXACTLY, publishTimeout: '1s' },
      )
      const fault = member.faults.transaction('commit', 'late', { times: 1, id: `${scene.group}/${scene.topic}/0` })
      await scene.produce(['a', 'b', 'c'])
      await scene.untilDone()
      expect(fault.hits).toBe(1)
      const values = (await stage().records(out)).map(({ value }) => String(value))
      expect(values.sort()).toEqual(['a-0', 'a-1', 'b-0', 'b-1', 'c-0', 'c-1'])
      expect(scene.values(1).sort()).toEqual(['a', 'b', 'c'])
    })

    it('one that is too large fails its record alone, and nothing of it stands', async () => {
      const scene = await given.scene({ partitions: 1 })
      const out = stage().unique('invoices')
      await stage().createTopics({ [out]: 1 }, { 'max.message.bytes': '2000' })
      const gate = scene.gate()
      await scene.join(
        async ({ value, ctx }) => {
          await gate.wait()
          const size = value === 'large' ? 4_000 : 10
          ctx.send({ topic: out, value: `${value}-small` })
          ctx.send({ topic: out, value: randomText(size, value ?? '') })
        },
        { ...EXACTLY, ordering: 'unordered' },
      )
      await scene.produce(['a', 'b', 'large', 'c', 'd'])
      await scene.untilCalls(5)
      gate.open()
      await scene.untilDone()
      const small = (await stage().records(out))
        .map(({ value }) => String(value))
        .filter((value) => value.endsWith('-small'))
      expect(small.sort()).toEqual(['a-small', 'b-small', 'c-small', 'd-small'])
      expect(await hops(scene.dlq)).toEqual(['0@2'])
    })
  })

  describe('exactly once: members come and go', () => {
    it('a partition that moves in the middle of a transaction: its new owner does it, and nothing of the old one stands', async () => {
      const scene = await given.scene({ partitions: 2 })
      const gate = scene.gate()
      const first = await scene.join(failsUnlessOk, EXACTLY)
      const held = first.faults.transaction('offsets', gate.wait(), { times: 2 })
      await scene.produce(['bad'], 0)
      await scene.produce(['bad'], 1)
      await stage().until(() => held.hits === 2, 'both transactions are open')
      const second = await scene.join(failsUnlessOk, EXACTLY)
      await stage().until(() => scene.partitionsOf(second).length === 1, 'the second has a partition')
      gate.open()
      await scene.untilDone()
      await expectEachHopOnce(scene, ['0@0', '1@0'])
      scene.expectNoStepBack()
    })

    it('a process that dies with a transaction open', async () => {
      const scene = await given.scene({ partitions: 1 })
      const gate = scene.gate()
      const first = await scene.join(failsUnlessOk, EXACTLY)
      const held = first.faults.transaction('commit', gate.wait(), { times: 1 })
      await scene.produce(['bad'])
      await stage().until(() => held.hits === 1, 'the transaction is open')
      await first.faults.kill()
      await scene.join(failsUnlessOk, EXACTLY)
      await scene.untilDone()
      await expectEachHopOnce(scene, ['0@0'])
    })

    it('a process that dies when its transaction is committed and it does not know yet', async () => {
      const scene = await given.scene({ partitions: 1 })
      const first = await scene.join(failsUnlessOk, EXACTLY)
      const fault = first.faults.transaction('commit', 'late', { times: 1 })
      await scene.produce(['bad'])
      await stage().until(
        async () => fault.hits === 1 && (await hops(scene.retry('200ms'))).length === 1,
        'it is committed',
      )
      await first.faults.kill()
      await scene.join(failsUnlessOk, EXACTLY)
      await scene.untilDone()
      await expectEachHopOnce(scene, ['0@0'])
      expect(scene.calls.filter(({ attempt }) => attempt === 1)).toHaveLength(1)
    })

    it('what is done beyond the offset, and published, is not done again by who comes after', async () => {
      const scene = await given.scene({ partitions: 1 })
      const gate = scene.gate()
      const first = await scene.join(
        async (call) => {
          if (call.value === 'stuck' && call.attempt === 1) await gate.wait()
          failsUnlessOk(call)
        },
        { ...EXACTLY, ordering: 'unordered' },
      )
      await scene.produce(['stuck', 'bad', 'ok', 'bad'])
      await stage().until(async () => (await hops(scene.dlq)).length === 2, 'two are through')
      await first.faults.kill()
      // With so little room the rest is fetched only later; the first commit of the new owner must not forget it.
      await scene.join(failsUnlessOk, { ...EXACTLY, ordering: 'unordered', maxBufferedRecords: 1 })
      await scene.untilDone()
      await expectEachHopOnce(scene, ['0@0', '0@1', '0@3'])
    })

    it('a stop waits until what is staged is through', async () => {
      const scene = await given.scene({ partitions: 1 })
      const gate = scene.gate()
      const member = await scene.join(failsUnlessOk, EXACTLY)
      const held = member.faults.transaction('publish', gate.wait(), { times: 1 })
      await scene.produce(['bad'])
      await stage().until(() => held.hits === 1, 'the transaction is open')
      const stopping = member.consumer.stop()
      gate.open()
      const report = await stage().during(stopping)
      expect(report).toEqual({ abandoned: [], finished: true })
      expect(await hops(scene.retry('200ms'))).toEqual(['0@0'])
      expect((await scene.committed()).get(0)).toBe(1n)
    })

    it('a stop past its time commits nothing of an open transaction', async () => {
      const scene = await given.scene({ partitions: 1 })
      const gate = scene.gate()
      const member = await scene.join(failsUnlessOk, EXACTLY)
      const held = member.faults.transaction('offsets', gate.wait(), { times: 1 })
      await scene.produce(['bad'])
      await stage().until(() => held.hits === 1, 'the transaction is open')
      await stage().during(member.consumer.stop({ timeout: '100ms' }))
      gate.open()
      await scene.join(failsUnlessOk, EXACTLY)
      await scene.untilDone()
      await expectEachHopOnce(scene, ['0@0'])
    })
  })

  describe('exactly once: trouble', () => {
    it('a lane whose transactions fail waits, says so, and starts nothing', async () => {
      const scene = await given.scene({ partitions: 1 })
      const member = await scene.join(failsUnlessOk, EXACTLY)
      const fault = member.faults.transaction('publish', 'reject', { id: `${scene.group}/${scene.topic}/0` })
      await scene.produce(['bad'])
      await stage().until(() => fault.hits >= 2, 'it fails again')
      expect(member.consumer.health().status).toBe('degraded')
      await scene.produce(['ok'])
      await stage().until(() => fault.hits >= 4, 'it fails again and again')
      expect(scene.values(1)).toEqual(['bad'])
      expect(member.hooks.counts.publishFailed).toBeGreaterThanOrEqual(3)
      fault.stop()
      await scene.untilDone()
      await expectEachHopOnce(scene, ['0@0'])
      expect(member.consumer.health().status).toBe('ok')
    })

    it('P12: a take-over that is refused in mid-run is told by health, with its reason, until it is not', async () => {
      const scene = await given.scene({ partitions: 1 })
      const member = await scene.join(failsUnlessOk, EXACTLY)
      await scene.produce(['ok'])
      await scene.untilDone()
      expect(member.consumer.health().status).toBe('ok')
      const fault = member.faults.transaction('begin', 'reject', { id: `${scene.group}/${scene.topic}/0` })
      await scene.produce(['bad'])
      const told = (): string => member.consumer.health().problems.join()
      await stage().until(
        () => told().includes(`${scene.topic}/0 waits: its transactional id cannot be taken over: Error: injected`),
        () => `health tells of it: ${told()}`,
      )
      expect(member.consumer.health().status).toBe('degraded')
      const [partition] = member.consumer.health().groups[0]!.partitions
      expect(partition?.notTakenOver).toContain('begin was refused')
      fault.stop()
      await scene.untilDone()
      await expectEachHopOnce(scene, ['0@1'])
      expect(member.consumer.health().status).toBe('ok')
    })
  })
}

/** Text that gzip cannot make small. */
function randomText(length: number, seed: string): string {
  let state = seed.length + 1
  let text = ''
  while (text.length < length) {
    state = (state * 1103515245 + 12345) % 2147483648
    text += state.toString(36)
  }
  return text.slice(0, length)
}
