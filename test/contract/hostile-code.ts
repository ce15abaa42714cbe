import { describe, expect, it } from 'vitest'
import { RetryableError, type BatchContext, type MessageBatch } from '../../src'
import { isOwnHeader } from '../../src/envelope'
import { no, revoked, THENABLES, THROWN, untouchable } from './hostile-things'
import type { Given } from './promises'
import { expectDead, expectUnharmed, throwIt } from './hostile-checks'
import { header } from './scene'

const NAMES = Object.keys(THROWN)
/** A handler that does not settle is given up after this, ms, and a grace. */
const PATIENCE = { handlerTimeout: '50ms', unknownErrors: 'dead-letter' }

/** P12: whatever the user's own code does, every record comes to its end and the consumer goes on. */
export function hostileCodePromises(given: Given): void {
  describe('P12 hostile code', () => {
    it.each([
      ['a handler', {}],
      ['a handler with quick tries', { immediate: { tries: 1, delay: '1ms' } }],
    ])('whatever is thrown by %s', async (_, options) => {
      const scene = await given.scene()
      const member = await scene.join(
        ({ value }) => {
          if (value !== 'good') throw THROWN[value!]!()
        },
        { ...options, unknownErrors: 'dead-letter' },
      )
      await scene.produce([...NAMES, 'good'])
      await scene.untilDone()
      expectUnharmed(scene, member)
      await expectDead(scene, NAMES)
    })

    it('whatever a batch handler throws, or names', async () => {
      const scene = await given.scene()
      const batchHandler = ({ messages }: MessageBatch, ctx: BatchContext): void => {
        messages.forEach(({ value }, index) => {
          const name = String(value)
          if (name in THROWN) ctx.fail(index, THROWN[name]!())
          else if (name !== 'good') throw THROWN[name.slice('thrown '.length)]!()
        })
      }
      const member = await scene.join(undefined, { handler: undefined, batchHandler, unknownErrors: 'dead-letter' })
      const thrown = NAMES.map((name) => `thrown ${name}`)
      await scene.produce([...NAMES, 'good', ...thrown])
      await scene.untilDone()
      expectUnharmed(scene, member)
      await expectDead(scene, [...NAMES, ...thrown])
    })

    it('whatever a handler returns', async () => {
      const scene = await given.scene({ schedule: [] })
      const member = await scene.join(({ value }) => {
        const { make, ends } = THENABLES[value!] ?? {}
        // For the fake broker's clock, which else waits for every handler.
        if (ends === 'timeout') void scene.gate().wait()
        return make?.()
      }, PATIENCE)
      await scene.produce([...Object.keys(THENABLES), 'good'])
      await scene.untilDone()
      expectUnharmed(scene, member)
      const bad = Object.keys(THENABLES).filter((name) => THENABLES[name]!.ends !== 'ok')
      await expectDead(scene, bad)
      const late = (await scene.dead()).filter((one) => header(one, 'x-error')!.includes('did not settle'))
      expect(late.map(({ value }) => String(value)).sort()).toEqual(
        bad.filter((name) => THENABLES[name]!.ends === 'timeout').sort(),
      )
    })

    it.each(['one by one', 'together'])('P3: what a handler does to its message stays its own, %s', async (how) => {
      const scene = await given.scene({ schedule: ['200ms'] })
      const seen: unknown[] = []
      const ruin = (message: object): never => {
        seen.push(structuredClone({ ...message, decoded: undefined, source: undefined }))
        const { headers } = message as { headers: Record<string, unknown> }
        ;(headers['list'] as unknown[]).push('more')
        for (const name of Object.keys(headers)) headers[name] = 42
        headers['x-replayed-from-dlq'] = 'true'
        for (const name of Object.keys(message)) Reflect.set(message, name, { parsed: name })
        Object.freeze(message)
        throw new RetryableError('closed')
      }
      const member = await scene.join(({ payload }) => {
        payload.topic = 'another'
        payload.partition = NaN
        ruin(payload.message)
      }, how === 'together' ? { handler: undefined, batchHandler: ({ messages }: MessageBatch) => messages.forEach(ruin) } : {}) // prettier-ignore
      const headers = [
        ['list', 'a'],
        ['list', 'b'],
        ['one', Buffer.from([0xff, 0])],
      ] as const
      await scene.produce([{ key: 'k', value: '{"a":1}', headers }])
      await scene.untilDone()
      expectUnharmed(scene, member)
      for (const topic of [scene.retry('200ms'), scene.dlq]) {
        const [copy, ...more] = await given.stage().records(topic)
        expect(more).toEqual([])
        expect([String(copy!.key), String(copy!.value)]).toEqual(['k', '{"a":1}'])
        expect(copy!.headers.filter(([name]) => !isOwnHeader(name))).toEqual(
          headers.map(([name, value]) => [name, Buffer.from(value as string)]),
        )
        expect(header(copy!, 'x-original-topic')).toBe(scene.topic)
        expect(header(copy!, 'x-original-offset')).toBe('0')
      }
      expect(seen).toHaveLength(2)
    })

    it('whatever is given to ctx.send()', async () => {
      const scene = await given.scene({ schedule: [] })
      const target = given.stage().unique('sent')
      await given.stage().createTopics({ [target]: 1 })
      const to = (more: object): object => ({ topic: target, value: 'v', ...more })
      const sends: Record<string, () => unknown> = {
        ...THROWN,
        'a revoked message': () => revoked(to({})),
        'a hole': () => Object.assign([to({})], { length: 3 }),
        'a topic of 40,000 letters': () => to({ topic: 't'.repeat(40_000) }),
        'a topic that is none': () => to({ topic: 'no topic!' }),
        'a topic of Kafka itself': () => to({ topic: '__consumer_offsets' }),
        'a topic that is a list': () => to({ topic: [target] }),
        'a partition beyond': () => to({ partition: 1e308 }),
        'a partition that is text': () => to({ partition: '0' }),
        'a key that is an object': () => to({ key: {} }),
        'a value whose look throws': () => Object.defineProperty(to({}), 'value', { get: no }),
        'a header that is a number': () => to({ headers: { a: 1 } }),
        'a header that is a list of lists': () => to({ headers: { a: [['x']] } }),
        'a header that throws': () => to({ headers: Object.defineProperty({}, 'a', { get: no, enumerable: true }) }),
        'headers in a Map': () => to({ headers: new Map([['a', 'b']]) }),
        'headers in a list': () => to({ headers: [['a', 'b']] }),
        'headers that are revoked': () => to({ headers: revoked() }),
      }
      const bad = Object.keys(sends)
      const member = await scene.join(({ value, ctx, payload }) => {
        if (value === 'good') {
          const one = { topic: target, value: 'first', headers: { ...payload.message.headers, a: 'b' } }
          ctx.send(one)
          one.value = 'second'
          one.headers.a = 'c'
          ctx.send([one])
        } else ctx.send(sends[value!]!() as never)
      })
      await scene.produce([...bad, { value: 'good', headers: [['constructor', 'x'], ['none', null]] }]) // prettier-ignore
      await scene.untilDone()
      expectUnharmed(scene, member)
      await expectDead(scene, bad)
      const stored = await given.stage().records(target)
      const told = stored.map(({ value, headers }) => [String(value), headers.map(([n, v]) => `${n}=${String(v)}`).sort()]) // prettier-ignore
      const passedOn = ['constructor=x', 'none=']
      expect(told).toEqual([
        ['first', ['a=b', ...passedOn]],
        ['second', ['a=c', ...passedOn]],
      ])
    })

    it('what a batch handler cannot send for one record fails that one alone', async () => {
      const scene = await given.scene({ schedule: [] })
      let calls = 0
      const batchHandler = ({ messages }: MessageBatch, ctx: BatchContext): void => {
        calls++
        const { length } = messages
        messages.forEach(({ value }, i) => {
          if (String(value) === 'bad') ctx.send({ topic: 'no topic!', value: 'x' }, i)
        })
        if (length > 1) expect(() => ctx.send({ topic: scene.topic } as never)).toThrow(/value is undefined/)
      }
      await scene.produce(['a', 'bad', 'b'])
      await scene.join(undefined, { handler: undefined, batchHandler })
      await scene.untilDone()
      await expectDead(scene, ['bad'])
      expect(calls).toBe(1)
    })

    it.each(['decode', 'schema'])('whatever a %s function does', async (which) => {
      const scene = await given.scene({ schedule: [] })
      // The clock of the fake broker does not move while a decoder is at work.
      const thenables = Object.entries(THENABLES).filter(
        ([, { ends }]) => ends !== 'timeout' || given.stage().kind === 'real',
      )
      const acts: Record<string, () => unknown> = {
        ...Object.fromEntries(NAMES.map((name) => [`throws ${name}`, () => throwIt(THROWN[name]!())])),
        ...Object.fromEntries(NAMES.map((name) => [`rejects ${name}`, () => Promise.reject(THROWN[name]!())])),
        ...Object.fromEntries(thenables.map(([name, { make }]) => [`then ${name}`, make])),
      }
      const issues: Record<string, () => unknown> = {
        'issues that are no list': () => ({ issues: 7 }),
        'issues of nothing': () => ({ issues: [undefined, null, 7] }),
        'an issue that throws': () => ({ issues: [untouchable()] }),
        'issues that are revoked': () => ({ issues: revoked([]) }),
        'no answer': () => undefined,
      }
      if (which === 'schema') Object.assign(acts, issues)
      const act = (value: Buffer | null): unknown => {
        return String(value) in acts ? acts[String(value)]!() : { value: 'fine' }
      }
      const standard = { version: 1, vendor: 'none', validate: act }
      const option =
        which === 'decode' ? { decode: act } : { decode: (value: Buffer) => value, schema: { '~standard': standard } }
      const member = await scene.join(undefined, { ...PATIENCE, ...option })
      await scene.produce([...Object.keys(acts), 'good'])
      await scene.untilDone()
      expect(member.hooks.counts.crashed).toBe(0)
      const isFine = (name: string): boolean => THENABLES[name.replace('then ', '')]?.ends === 'ok'
      await expectDead(scene, Object.keys(acts).filter((name) => !isFine(name))) // prettier-ignore
      expect(scene.values()).toContain('good')
    })
  })
}
